package web

import (
	"bytes"
	"encoding"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

var update = flag.Bool("update", false, "write openapi.json")

// operation documents one route. A nil type is no body.
type operation struct {
	summary string
	in, out reflect.Type
	stream  bool
	status  string // of success; "200" unless given
	query   []string
}

// receiptFile is the form of what bundle.SignReceipt makes.
type receiptFile struct {
	Receipt   bundle.Receipt `json:"receipt"`
	Signature map[string]any `json:"signature"`
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

func operations() map[string]operation {
	return map[string]operation{
		"GET /cases":                  {summary: "Cases, newest first: all open ones, and as many of the others as make 1,000.", out: typeOf[casesAnswer]()},
		"POST /cases":                 {summary: "Receives a bundle. At the console only.", in: typeOf[pathBody](), stream: true},
		"GET /cases/{id}":             {summary: "One case, with its history.", out: typeOf[gate.Case]()},
		"GET /cases/{id}/review":      {summary: "What people decide on: canonical bytes, whose digest the headers ETag and Packhof-Review carry.", out: typeOf[gate.Review]()},
		"GET /cases/{id}/findings":    {summary: "The findings in words.", out: typeOf[findingsAnswer](), query: []string{"lang"}},
		"GET /cases/{id}/decisions":   {summary: "What was decided so far.", out: typeOf[decisionsAnswer]()},
		"POST /cases/{id}/decisions":  {summary: "Approves or rejects. Always with account and password (HTTP Basic).", in: typeOf[decisionBody](), out: typeOf[gate.Case]()},
		"GET /cases/{id}/plan":        {summary: "What a release would write at each destination.", out: typeOf[planAnswer]()},
		"POST /cases/{id}/release":    {summary: "Loads what was approved.", stream: true},
		"GET /cases/{id}/want":        {summary: "What is lacking of a case's bundle: the want list, as it is carried out.", out: typeOf[bundle.Want]()},
		"POST /receipts":              {summary: "Issues a receipt: what the gate holds, signed, as it is carried out.", out: typeOf[receiptFile]()},
		"POST /previews":              {summary: "Looks at the head of a bundle without taking it in. At the console only.", in: typeOf[pathBody](), out: typeOf[previewAnswer](), query: []string{"lang"}},
		"POST /verifications":         {summary: "Proves a bundle without taking it in. At the console only.", in: typeOf[pathBody](), stream: true},
		"GET /trust":                  {summary: "Whom the gate trusts.", out: typeOf[gate.TrustStatus]()},
		"POST /trust":                 {summary: "Takes a root on the first day, or a later document.", in: typeOf[trustBody](), out: typeOf[gate.TrustStatus]()},
		"GET /users":                  {summary: "All accounts.", out: typeOf[usersAnswer]()},
		"POST /users":                 {summary: "Makes an account.", in: typeOf[accountBody](), out: typeOf[struct{}](), status: "201"},
		"POST /users/{name}/password": {summary: "Sets a password, and ends the account's sessions.", in: typeOf[passwordBody](), out: typeOf[struct{}]()},
		"GET /doctor":                 {summary: "How the gate is.", out: typeOf[doctorAnswer]()},
		"GET /version":                {summary: "Program and gate.", out: typeOf[versionAnswer]()},
		"GET /enrolment":              {summary: "enrol.json, which the connected side needs.", out: typeOf[bundle.Enrolment]()},
		"GET /depot":                  {summary: "What plant clients can pull.", out: typeOf[depotListing](), query: []string{"after", "limit"}},
		"POST /session":               {summary: "Logs in: sets the cookie of a session. Over the network only.", in: typeOf[loginBody](), out: typeOf[sessionAnswer]()},
		"DELETE /session":             {summary: "Logs out. Over the network only.", status: "204"},
		"GET /openapi.json":           {summary: "This document.", out: typeOf[map[string]any]()},
	}
}

type object = map[string]any

// TestDescriptionCoversTheAPI holds openapi.json to the table of routes and to
// the Go types behind them.
func TestDescriptionCoversTheAPI(t *testing.T) {
	known := operations()
	schemas, paths := object{}, object{}
	for _, r := range apiRoutes() {
		path := openPath(strings.TrimPrefix(r.path, apiRoot))
		op, ok := known[r.method+" "+path]
		if !ok {
			t.Fatalf("%s %s is not documented", r.method, path)
		}
		delete(known, r.method+" "+path)
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(r.method)] = op.document(path, schemas)
	}
	for name := range known {
		t.Errorf("%s is documented and no route", name)
	}
	want := marshal(t, object{
		"openapi": "3.1.0",
		"info":    object{"title": "Packhof gate", "version": "v1", "summary": "Cases, decisions and releases of one gate."},
		"servers": []any{object{"url": apiRoot}}, "paths": paths,
		"components": object{"schemas": schemas, "securitySchemes": object{
			"session": object{"type": "apiKey", "in": "cookie", "name": "__Host-packhof"}, "account": object{"type": "http", "scheme": "basic"}}},
		"security": []any{object{"session": []any{}}, object{"account": []any{}}},
	})
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(description, want) {
		t.Error("openapi.json is out of date: go test ./web -run TestDescription -update")
	}
}

// openPath turns :id into {id}.
func openPath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

func (o operation) document(path string, schemas object) object {
	doc := object{"summary": o.summary}
	var parameters []any
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parameters = append(parameters, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, name := range o.query {
		parameters = append(parameters, object{"name": name, "in": "query", "schema": object{"type": "string"}})
	}
	if parameters != nil {
		doc["parameters"] = parameters
	}
	if o.in != nil {
		doc["requestBody"] = object{"required": true, "content": content("application/json", o.in, schemas)}
	}
	status, success := o.status, object{"description": "done"}
	if status == "" {
		status = "200"
	}
	switch {
	case o.stream:
		success = object{"description": "one JSON object a line: progress, and last what came of it", "content": content("application/x-ndjson", typeOf[line](), schemas)}
	case o.out != nil:
		success["content"] = content("application/json", o.out, schemas)
	}
	doc["responses"] = object{status: success, "default": object{"description": "why not", "content": content("application/problem+json", typeOf[problemDocument](), schemas)}}
	return doc
}

func content(media string, t reflect.Type, schemas object) object {
	return object{media: object{"schema": schemaOf(t, schemas)}}
}

// schemaOf describes a type as encoding/json/v2 writes it. Named structs go to
// schemas, once each.
func schemaOf(t reflect.Type, schemas object) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), schemas)
	case t == typeOf[time.Time](), t == typeOf[bundle.Instant]():
		return object{"type": "string", "format": "date-time"}
	case t == typeOf[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case t.Implements(typeOf[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem(), schemas)}
	case reflect.Map:
		return object{"type": "object"}
	case reflect.Struct:
		return structSchema(t, schemas)
	}
	panic("no schema for " + t.String())
}

func structSchema(t reflect.Type, schemas object) object {
	if t.Name() == "" {
		return object{"type": "object"}
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if schemas[name] == nil {
		properties := object{}
		schemas[name] = object{"type": "object", "properties": properties}
		addFields(t, properties, schemas)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func addFields(t reflect.Type, properties, schemas object) {
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-":
		case f.Anonymous && tag == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			addFields(embedded, properties, schemas)
		case f.IsExported():
			properties[tag] = schemaOf(f.Type, schemas)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}
