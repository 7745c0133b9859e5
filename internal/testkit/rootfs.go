package testkit

import (
	"fmt"
	"strings"
)

// DebPackage is an installed Debian package of a made-up root file system.
type DebPackage struct{ Name, Version string }

// BasePackages returns a few packages of Debian 12 at versions it really had.
func BasePackages() []DebPackage {
	return []DebPackage{
		{"base-files", "12.4+deb12u5"},
		{"libc6", "2.36-9+deb12u4"},
		{"libssl3", "3.0.11-1~deb12u2"},
		{"zlib1g", "1:1.2.13.dfsg-1"},
	}
}

// RootFS returns the files by which a scanner recognises a Debian 12 root file
// system with these packages: os-release, dpkg's database and the copyright
// files it takes licences from.
func RootFS(packages []DebPackage) []File {
	var status strings.Builder
	files := []File{{Path: "etc/os-release", Data: []byte(osRelease)}}
	for _, p := range packages {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nPriority: required\nSection: libs\n"+
			"Maintainer: Packhof tests <tests@packhof.example>\nArchitecture: amd64\nVersion: %s\n"+
			"Description: stands in for %s\n\n", p.Name, p.Version, p.Name)
		files = append(files, File{
			Path: "usr/share/doc/" + p.Name + "/copyright",
			Data: []byte("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nCopyright: 2026 Packhof\nLicense: Apache-2.0\n"),
		})
	}
	return append(files, File{Path: "var/lib/dpkg/status", Data: []byte(status.String())})
}

const osRelease = `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
`
