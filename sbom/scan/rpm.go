package scan

// syft reads the RPM databases of today's Red Hat family through
// database/sql and leaves the driver to its user; without one it finds no
// packages in them.
import _ "modernc.org/sqlite"
