package architecture

// Other people's packages that the rules are about.
const (
	age               = "filippo.io/age/..."
	cobra             = "github.com/spf13/cobra/..."
	cosign            = "github.com/sigstore/cosign/..."
	distribution      = "github.com/distribution/distribution/..."
	echo              = "github.com/labstack/echo/..."
	containerregistry = "github.com/google/go-containerregistry/..."
	grype             = "github.com/anchore/grype/..."
	helm              = "helm.sh/helm/..."
	minio             = "github.com/minio/minio-go/..."
	opa               = "github.com/open-policy-agent/opa/..."
	paultagDebian     = "pault.ag/go/debian/..."
	syft              = "github.com/anchore/syft/..."
)

// plannedModules are those of them that may not be in go.mod yet; any other
// pattern that fits nothing in go.mod is misspelt.
var plannedModules = []string{grype, helm, paultagDebian, cosign}

// Words for rules about more than one package.
const (
	anythingOfOurs   = "./..."
	anythingButGoStd = "*" // every package outside the standard library
)

// rule forbids an import, or, unless it is about direct ones only, a
// dependency.
type rule struct {
	from     string
	never    []string
	but      []string // exceptions from never; a package may always use itself
	directly bool
	why      string
}

// shores are the rules by which the two sides stay apart.
var shores = []rule{
	{
		from: "./mirror/...", never: []string{"./gate/...", "./web/..."},
		why: "the connected side must not depend on the gate: only the parcel crosses",
	},
	{
		from: "./gate/...", never: []string{"./mirror/...", "./web/...", "./sbom/scan"},
		why: "the gate must work, and be judged, without anything that fetches or scans; it does not know its screens",
	},
	{
		from: "./web/...", never: []string{"./mirror/...", "./gate/*"},
		why: "screens show what the gate says; they do not know destinations",
	},
	{
		from: "./web/...", never: []string{"./signing/..."}, directly: true,
		why: "no signature is judged in a request handler",
	},
	{
		from: "./mirror/*", never: []string{"./mirror/*"},
		why: "a family of sources can be taken away without touching another",
	},
	{
		from: "./gate/*", never: []string{"./gate/*"},
		why: "a kind of destination can be taken away without touching another",
	},
}

// neighbours are the other rows of the design's table.
var neighbours = []rule{
	{
		from: "./signing", never: []string{anythingOfOurs},
		why: "who vouches for bytes is decided without looking at what they are",
	},
	{
		from: "./signing", never: []string{"net/http"}, directly: true,
		why: "signatures are verified across an air gap: nothing is fetched for it",
	},
	{
		from: "./signing/cosign", never: []string{anythingOfOurs}, but: []string{"./signing"},
		why: "the legacy format is an annex of signing",
	},
	{
		from: "./sbom", never: []string{anythingOfOurs},
		why: "documents about content are read the same on both shores",
	},
	{
		from: "./sbom/inspect", never: []string{anythingOfOurs}, but: []string{"./sbom"},
		why: "the inspection of hostile files stays small enough to be reviewed",
	},
	{
		from: "./sbom/scan", never: []string{anythingOfOurs}, but: []string{"./sbom"},
		why: "what is linked with the scanner could harm nothing but a bounded child process",
	},
	{
		from: "./bundle", never: []string{"./policy/...", "./mirror/...", "./gate/...", "./web/..."},
		why: "the parcel is the contract: it knows neither sender nor receiver nor judge",
	},
	{
		from: "./bundle", never: []string{"net/http"}, directly: true,
		why: "a parcel travels on a disk",
	},
	{
		from: "./policy", never: []string{anythingOfOurs},
		why: "the judge knows facts only in the form of its own input schema",
	},
	{
		from: "./policy/facts", never: []string{"./mirror/...", "./gate/...", "./web/..."},
		why: "facts are stated the same way for a preview on the connected side and for the verdict at the gate",
	},
	{
		from: "./policy/judge", never: []string{anythingOfOurs}, but: []string{"./policy", "./internal/child", "./internal/problem"},
		why: "what runs the engine within bounds hands over documents and knows nothing of what they are about",
	},
	{
		from: "./policy/fit", never: []string{anythingOfOurs},
		why: "whether an image runs on a host is a question about two descriptions, not about a parcel",
	},
	{
		from: "./mirror", directly: true,
		never: []string{containerregistry, helm, minio, paultagDebian, distribution},
		why:   "planning and exporting know sources by one interface; client libraries belong to mirror/*",
	},
	{
		from: "./internal/cas", never: []string{anythingOfOurs},
		why: "everything rests on the store",
	},
	{
		from: "./internal/agefile", never: []string{anythingOfOurs},
		why: "what is encrypted is opened without looking at what it is",
	},
	{
		from: "./internal/agefile", never: []string{"net/http", "os"}, directly: true,
		why: "it opens what it is handed, and nothing else",
	},
	{
		from: "./internal/problem", never: []string{anythingOfOurs, anythingButGoStd},
		why: "everyone may import it, so it may cost nothing",
	},
	{
		from: "./internal/child", never: []string{anythingOfOurs, anythingButGoStd}, but: []string{"golang.org/x/sys/..."},
		why: "what bounds other programs must be easy to review; x/sys has the system calls that the standard library lacks",
	},
	{
		from: "./internal/registry", never: []string{"./mirror/...", "./gate/...", "./web/..."},
		why: "transport serves both shores",
	},
	{
		from: "./internal/s3", never: []string{"./mirror/...", "./gate/...", "./web/..."},
		why: "transport serves both shores",
	},
	{
		from: "./internal/deb", never: []string{"./mirror/...", "./gate/...", "./web/..."},
		why: "transport serves both shores",
	},
	{
		from: "./internal/cli", never: []string{"./mirror/...", "./gate/...", "./web/..."},
		why: "what all programs print alike is in all programs",
	},
	{
		from: "./internal/config", never: []string{anythingOfOurs}, but: []string{"./internal/problem"},
		why: "what reads the files that people write does not know what they are for",
	},
	{
		from: "./internal/testkit", never: []string{"./mirror/...", "./gate/...", "./web/..."},
		why: "tests of both shores use the kit; with a shore in it, tests of one would depend on the other",
	},
}

// room is the only place that may import a dependency directly.
type room struct {
	dependency string
	only       []string // besides rehearsals, which may import anything
	why        string
}

var rooms = []room{
	{echo, []string{"./web"}, "the web framework can be replaced in one folder, and the gate works without it"},
	{opa, []string{"./policy"}, "the policy engine is an implementation of the judge"},
	{syft, []string{"./sbom/scan"}, "the scanner parses hostile files with code of many hands: it runs in a child process"},
	{grype, []string{"./sbom/scan"}, "the scanner parses hostile files with code of many hands: it runs in a child process"},
	{cosign, []string{"./signing/cosign"}, "cosign v2 is at the end of its life and doubles a program's size"},
	{minio, []string{"./internal/s3"}, "one S3 client, configured and bounded in one place"},
	{cobra, []string{"./cmd/*", "./internal/cli", "./internal/cli/clitest"}, "commands are wiring; logic does not know that it is called from a command line"},
	{age, []string{"./internal/agefile"}, "one way to encrypt and to open, bounded and in our words in one place"},
	{distribution, []string{"./internal/testkit"}, "it is a server for tests, not a library of ours"},
}

// link names the only programs that may contain something.
type link struct {
	linked string
	only   []string // besides rehearsals
	why    string
}

var links = []link{
	{"./sbom/scan", []string{"./cmd/packhof-scan"}, "a crash, or worse, of the scanner must end in a bounded child process"},
	{syft, []string{"./cmd/packhof-scan"}, "a crash, or worse, of the scanner must end in a bounded child process"},
	{grype, []string{"./cmd/packhof-scan"}, "a crash, or worse, of the scanner must end in a bounded child process"},
	{"./signing/cosign", []string{"./cmd/packhof"}, "legacy signatures are read where images come from; the gate accepts ours alone"},
}

// gateLinks is what must be in nothing that runs behind the gap.
var gateLinks = []rule{
	{
		from: "./cmd/packhof-gate", never: []string{"./mirror/..."},
		why: "there is nothing to fetch behind the gap, and a way to fetch is a way out",
	},
	{
		from: "./cmd/packhof-gate", never: []string{syft, grype},
		why: "files are unpacked and parsed in a bounded child process only",
	},
	{
		from: "./cmd/packhof-gate", never: []string{cosign},
		why: "cosign v2 can build network clients and has flaws that will not be mended",
	},
}

// drawers are names of packages that say nothing, and so attract anything.
var drawers = []string{"base", "common", "core", "helper", "helpers", "lib", "misc", "model", "models", "shared", "type", "types", "util", "utils"}
