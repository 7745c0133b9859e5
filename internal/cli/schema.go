package cli

import (
	"encoding"
	"reflect"

	"github.com/invopop/jsonschema"
)

// Schema makes the JSON Schema of a document from its Go type: objects are
// closed, and what is written as text is a string.
func Schema(document any) *jsonschema.Schema {
	text := reflect.TypeFor[encoding.TextMarshaler]()
	r := jsonschema.Reflector{
		ExpandedStruct: true,
		Anonymous:      true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if t.Implements(text) || reflect.PointerTo(t).Implements(text) {
				return &jsonschema.Schema{Type: "string"}
			}
			return nil
		},
	}
	return r.Reflect(document)
}
