package scan_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/packhof/packhof/sbom/scan/scantest"
)

// A database as rpm 4.16 and later writes it: without a driver for it the
// images of the Red Hat family would look empty.
func TestRPMDatabaseIsRead(t *testing.T) {
	root := map[string][]byte{
		"etc/os-release":           []byte("ID=rocky\nVERSION_ID=\"9.4\"\n"),
		"var/lib/rpm/rpmdb.sqlite": rpmDatabase(t, rpmHeader("crane-tools", "5.1", "2.el9")),
	}
	response, _ := checked(t, scantest.Image(t, scantest.Gzip(t, scantest.Tar(t, root))))
	if got := packages(t, response); !slices.Contains(got, "crane-tools 5.1-2.el9") {
		t.Errorf("packages %q, unknown %v", got, response.Unknowns)
	}
}

func rpmDatabase(t *testing.T, headers ...[]byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rpmdb.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		if _, err := db.Exec("INSERT INTO Packages (blob) VALUES (?)", header); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// rpmHeader writes an RPM header blob: counts, index entries of (tag, type,
// offset, count), then the data they point into.
func rpmHeader(name, version, release string) []byte {
	const stringType = 6
	tags := []struct {
		tag   uint32
		value string
	}{{1000, name}, {1001, version}, {1002, release}, {1014, "MIT"}, {1022, "x86_64"}}
	var index, data bytes.Buffer
	for _, entry := range tags {
		for _, field := range []uint32{entry.tag, stringType, uint32(data.Len()), 1} {
			_ = binary.Write(&index, binary.BigEndian, field)
		}
		data.WriteString(entry.value + "\x00")
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(len(tags)))
	header = binary.BigEndian.AppendUint32(header, uint32(data.Len()))
	return append(append(header, index.Bytes()...), data.Bytes()...)
}
