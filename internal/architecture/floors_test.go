package architecture

import "slices"

// floors are all our packages, existing or planned, from the ground up. An
// import may only go to a lower floor, never along the same one: what stands
// side by side does not know each other. Every package has a line here; a new
// one is put as low as its imports allow.
var floors = [][]string{
	{ // the ground: nothing of ours below it
		"./internal/agefile",
		"./internal/architecture",
		"./internal/cas",
		"./internal/child",
		"./internal/download",
		"./internal/problem",
		"./policy",
		"./policy/fit",
		"./sbom",
		"./signing",
	},
	{ // transport, what costs many dependencies, and what people write
		"./internal/cli",
		"./internal/config",
		"./internal/deb",
		"./internal/registry",
		"./internal/s3",
		"./sbom/inspect",
		"./sbom/scan",
		"./sbom/scan/scantest",
		"./signing/cosign",
	},
	{ // the parcel, all that crosses the gap
		"./bundle",
	},
	{ // what tests are made with, such as forged parcels
		"./internal/cli/clitest",
		"./internal/testkit",
	},
	{ // what states facts about a parcel, and has them judged
		"./policy/facts",
		"./policy/judge",
	},
	{ // the two shores
		"./gate",
		"./mirror",
	},
	{ // what is plugged into a shore, and its screens
		"./gate/depot",
		"./gate/dir",
		"./gate/harbor",
		"./gate/registry",
		"./gate/s3",
		"./gate/sinktest",
		"./mirror/chart",
		"./mirror/dvc",
		"./mirror/files",
		"./mirror/hub",
		"./mirror/nvidia",
		"./mirror/oci",
		"./mirror/packages",
		"./mirror/s3",
		"./mirror/sourcetest",
		"./web",
	},
	{ // programs
		"./cmd/packhof",
		"./cmd/packhof-gate",
		"./cmd/packhof-scan",
		"./internal/bench",
		"./internal/demo",
	},
}

// rehearsals are programs that run on a developer's machine only; they may
// import anything below them.
var rehearsals = []string{"./internal/bench", "./internal/demo"}

// forTests are packages that ship in no program: the kit, what holds pages
// against a program, the conformance suites of Source and Sink, and what is made
// to be scanned.
var forTests = []string{"./internal/testkit", "./internal/cli/clitest", "./mirror/sourcetest", "./gate/sinktest", "./sbom/scan/scantest"}

// floorOf returns the floor of a package, the ground being 0.
func floorOf(name string) (floor int, known bool) {
	floor = slices.IndexFunc(floors, func(names []string) bool { return slices.Contains(names, name) })
	return floor, floor >= 0
}

// isKnownPattern tells whether a pattern about our packages is about one that
// has a floor; if not, it is misspelt or out of date.
func isKnownPattern(pattern string) bool {
	return pattern == "./..." || slices.ContainsFunc(slices.Concat(floors...), func(name string) bool { return matches(pattern, name) })
}
