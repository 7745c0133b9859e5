package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/problem"
)

// configKind heads every gate.yaml, beside apiVersion.
const configKind = "Gate"

// settings are gate.yaml. Paths are relative to the data directory, in which it
// lies.
type settings struct {
	APIVersion   string            `json:"apiVersion" jsonschema:"enum=packhof/v1"`
	Kind         string            `json:"kind" jsonschema:"enum=Gate"`
	Listen       string            `json:"listen,omitempty" jsonschema_description:"address and port of serve; default 127.0.0.1:8443, all addresses: \":8443\""`
	TLS          tlsFiles          `json:"tls,omitempty" jsonschema_description:"certificate of serve; default: the one that init made"`
	Approvals    approvals         `json:"approvals,omitempty" jsonschema_description:"how many people have to approve, by verdict"`
	Policy       string            `json:"policy,omitempty" jsonschema_description:"folder with rules of the plant's own (*.rego) and parameters (config.json), which has to be there; default policy, which init makes"`
	Judge        judgeBounds       `json:"judge,omitempty" jsonschema_description:"bounds of the process that evaluates the policy"`
	Destinations []destinationSpec `json:"destinations,omitempty" jsonschema_description:"where released artifacts are loaded, beside the depot"`
}

type tlsFiles struct {
	Certificate string `json:"certificate,omitempty" jsonschema_description:"PEM file, the server's certificate first; default tls/cert.pem"`
	Key         string `json:"key,omitempty" jsonschema_description:"PEM file; default tls/key.pem"`
}

type approvals struct {
	Allow  *int `json:"allow,omitempty" jsonschema:"minimum=0,maximum=9" jsonschema_description:"for what the policy allows; default 1"`
	Review *int `json:"review,omitempty" jsonschema:"minimum=1,maximum=9" jsonschema_description:"for what has findings for review; default 1"`
}

type judgeBounds struct {
	Timeout config.Span `json:"timeout,omitempty" such:"10s or 2m" jsonschema_description:"such as 10s; default 10s"`
	Memory  config.Size `json:"memory,omitempty" such:"512MiB or 2GiB" jsonschema_description:"such as 512MiB; default 512MiB"`
}

// destinationSpec is one destination. Which fields it has depends on Type.
type destinationSpec struct {
	Name        string        `json:"name" jsonschema_description:"a-z, 0-9 and inner hyphens; it appears in plans and in the audit log"`
	Type        string        `json:"type" jsonschema:"enum=registry,enum=s3"`
	Accepts     []bundle.Kind `json:"accepts" jsonschema:"minItems=1" jsonschema_description:"kinds of artifacts that are loaded there"`
	Naming      naming        `json:"naming,omitempty" jsonschema_description:"how artifacts are called there"`
	Registry    string        `json:"registry,omitempty" jsonschema_description:"of type registry: host, port and path, such as registry.example/plant"`
	Endpoint    string        `json:"endpoint,omitempty" jsonschema_description:"of type s3: such as https://s3.example:9000"`
	Bucket      string        `json:"bucket,omitempty" jsonschema_description:"of type s3"`
	Prefix      string        `json:"prefix,omitempty" jsonschema_description:"of type s3: stands before every key"`
	Region      string        `json:"region,omitempty" jsonschema_description:"of type s3: default us-east-1"`
	CAFile      string        `json:"caFile,omitempty" jsonschema_description:"PEM file with the certificate authority of the server"`
	Packs       bool          `json:"packs,omitempty" jsonschema_description:"of type registry: take trees whose small files lie in packs, as packs"`
	Plain       bool          `json:"plain,omitempty" jsonschema_description:"speak http without TLS"`
	Credentials credentials   `json:"credentials,omitempty" jsonschema_description:"a name and where its password is; none: without"`
}

type naming struct {
	Repository string `json:"repository,omitempty" jsonschema_description:"with {kind}, {name}, {version}; default {name}"`
	Tag        string `json:"tag,omitempty" jsonschema_description:"likewise; default {version}"`
}

// credentials name a secret and never hold one.
type credentials struct {
	User         string `json:"user,omitempty" jsonschema_description:"user, or access key of s3"`
	PasswordFile string `json:"passwordFile,omitempty" jsonschema_description:"file whose first line is the password, or the secret key of s3"`
	PasswordEnv  string `json:"passwordEnv,omitempty" jsonschema_description:"environment variable that holds it instead"`
}

// Types of destinations.
const (
	typeRegistry = "registry"
	typeS3       = "s3"
)

func (c *settings) setDefaults() {
	one, naming := 1, gate.DefaultNaming()
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8443")
	c.TLS.Certificate = cmp.Or(c.TLS.Certificate, "tls/cert.pem")
	c.TLS.Key = cmp.Or(c.TLS.Key, "tls/key.pem")
	c.Approvals.Allow = cmp.Or(c.Approvals.Allow, &one)
	c.Approvals.Review = cmp.Or(c.Approvals.Review, &one)
	c.Policy = cmp.Or(c.Policy, "policy")
	c.Judge.Timeout = cmp.Or(c.Judge.Timeout, config.Span(10*time.Second))
	c.Judge.Memory = cmp.Or(c.Judge.Memory, config.Size(512<<20))
	for i := range c.Destinations {
		d := &c.Destinations[i]
		d.Naming.Repository = cmp.Or(d.Naming.Repository, naming.Repository)
		d.Naming.Tag = cmp.Or(d.Naming.Tag, naming.Tag)
	}
}

// validate finds every wrong field: the error is a *problem.FieldError, or
// joins several.
func (c *settings) validate() error {
	var wrong problem.Fields
	config.CheckHead(c.APIVersion, c.Kind, configKind, &wrong)
	checkApprovals("allow", *c.Approvals.Allow, 0, &wrong)
	checkApprovals("review", *c.Approvals.Review, 1, &wrong)
	if c.Judge.Timeout < config.Span(time.Second) || c.Judge.Timeout > config.Span(10*time.Minute) {
		wrong.Add("judge.timeout", fmt.Sprintf("%s is not between 1s and 10m", c.Judge.Timeout), "write  timeout: 10s")
	}
	if c.Judge.Memory < 256<<20 || c.Judge.Memory > 64<<30 {
		wrong.Add("judge.memory", fmt.Sprintf("%d bytes are not between 256MiB and 64GiB", int64(c.Judge.Memory)), "write  memory: 512MiB")
	}
	wrong.Join(checkListen("listen", c.Listen))
	names := map[string]bool{gate.DepotName: true}
	for i, d := range c.Destinations {
		path := fmt.Sprintf("destinations[%d]", i)
		if d.Name != "" && names[d.Name] {
			wrong.Add(path+".name", fmt.Sprintf("%q is taken", d.Name), "give each destination a name of its own; depot is the built-in one")
		}
		names[d.Name] = true
		d.validate(path, &wrong)
	}
	return wrong.Err()
}

func checkApprovals(verdict string, people, least int, wrong *problem.Fields) {
	if people < least || people > gate.MaxApprovals {
		wrong.Add("approvals."+verdict, fmt.Sprintf("%d is not between %d and %d", people, least, gate.MaxApprovals), "write  "+verdict+": 1")
	}
}

// checkListen refuses what net.Listen would, before anything is opened.
func checkListen(path, address string) error {
	i := strings.LastIndexByte(address, ':')
	if i >= 0 {
		port, err := strconv.ParseUint(address[i+1:], 10, 16)
		if err == nil && (port != 0 || address[i+1:] == "0") {
			return nil
		}
	}
	return problem.Field(path, fmt.Sprintf("%q has no port", address), "write  listen: 127.0.0.1:8443")
}

func (d *destinationSpec) validate(path string, wrong *problem.Fields) {
	if !bundle.ValidChannel(d.Name) {
		wrong.Add(path+".name", fmt.Sprintf("%q cannot name a destination", d.Name), "use up to 40 of a-z, 0-9 and inner hyphens")
	}
	if len(d.Accepts) == 0 {
		wrong.Add(path+".accepts", "there are none", "name kinds of artifacts, such as  accepts: [image]")
	}
	for i, kind := range d.Accepts {
		if !slices.Contains(bundle.Kinds(), kind) || slices.Contains(d.Accepts[:i], kind) {
			wrong.Add(fmt.Sprintf("%s.accepts[%d]", path, i), fmt.Sprintf("%q is no kind of artifact, or stands there twice", kind), "kinds: "+joinKinds(bundle.Kinds()))
		}
	}
	if err := (gate.Naming{Repository: d.Naming.Repository, Tag: d.Naming.Tag}).Check(); err != nil {
		wrong.Add(path+".naming", err.Error(), "use {kind}, {name} and {version}")
	}
	d.Credentials.validate(path+".credentials", wrong)
	d.validatePlace(path, wrong)
}

// validatePlace makes sure that a destination has the fields of its type and
// none of another.
func (d *destinationSpec) validatePlace(path string, wrong *problem.Fields) {
	registry := []field{{"registry", d.Registry, true}}
	s3 := []field{{"endpoint", d.Endpoint, true}, {"bucket", d.Bucket, true}, {"prefix", d.Prefix, false}, {"region", d.Region, false}}
	withoutSecrets(path, registry[0], wrong)
	withoutSecrets(path, s3[0], wrong)
	switch d.Type {
	case typeRegistry:
		checkFields(path, d.Type, registry, s3, wrong)
	case typeS3:
		checkFields(path, d.Type, s3, registry, wrong)
		if d.Packs {
			wrong.Add(path+".packs", "a destination of type s3 has no packs: the files themselves go there", "take it out")
		}
	default:
		wrong.Add(path+".type", fmt.Sprintf("%q is no type of destination", d.Type), "types: registry, s3")
	}
}

// withoutSecrets refuses who logs in as part of an address, which many get to
// see, and does not repeat it.
func withoutSecrets(path string, f field, wrong *problem.Fields) {
	if strings.Contains(f.value, "@") {
		wrong.Add(path+"."+f.name, fmt.Sprintf("%q has a user before its host", problem.Address(f.value)), "take user and password out, and write  credentials: {user: …, passwordFile: …}")
	}
}

// field is a text of a destination.
type field struct {
	name, value string
	needed      bool
}

func checkFields(path, kind string, own, foreign []field, wrong *problem.Fields) {
	for _, f := range own {
		if f.needed && f.value == "" {
			wrong.Add(path, fmt.Sprintf("a destination of type %s needs %s", kind, f.name), "add  "+f.name+":")
		}
	}
	for _, f := range foreign {
		if f.value != "" {
			wrong.Add(path+"."+f.name, fmt.Sprintf("a destination of type %s has no %s", kind, f.name), "take it out")
		}
	}
}

func (c *credentials) validate(path string, wrong *problem.Fields) {
	if *c == (credentials{}) {
		return
	}
	if c.User == "" {
		wrong.Add(path+".user", "there is none", "write  user:")
	}
	if (c.PasswordFile == "") == (c.PasswordEnv == "") {
		wrong.Add(path, "exactly one of passwordFile and passwordEnv says where the password is", "write  passwordFile:")
	}
}

func joinKinds(kinds []bundle.Kind) string {
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = string(k)
	}
	return strings.Join(texts, ", ")
}
