package schema

import (
	"bytes"
	_ "embed"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// OpenRPC is the document that describes the service: every method with its
// parameters, result and errors, and every type with its meaning. It is
// generated ahead from the declarations of this package (see schema/openrpc).
//
//go:embed generated/openrpc.json
var OpenRPC []byte

// TypeName is the name of a type in the document: ReserveParams for
// Call[ReserveInput], for any other type the one it has in Go.
func TypeName(t reflect.Type) string {
	name := t.Name()
	if _, argument, ok := strings.Cut(name, "["); ok {
		input := argument[strings.LastIndex(argument, ".")+1 : len(argument)-1]
		return strings.TrimSuffix(input, "Input") + "Params"
	}
	return name
}

// definitions finds the schemas in the document. To read them all, and what is
// said about methods, would take longer than everything else that a first call needs.
var definitions = sync.OnceValue(func() map[string]jsontext.Value {
	found := map[string]jsontext.Value{}
	d := jsontext.NewDecoder(bytes.NewBuffer(OpenRPC), lenient)
	err := seek(d, "components")
	if err == nil {
		err = seek(d, "schemas")
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	for err == nil && d.PeekKind() == jsontext.KindString {
		token, _ := d.ReadToken()
		name := token.String()
		var text jsontext.Value
		text, err = d.ReadValue()
		end := d.InputOffset()
		found[name] = OpenRPC[end-int64(len(text)) : end]
	}
	if err != nil {
		panic("schema: embedded document: " + err.Error())
	}
	return found
})

// seek reads up to the value of that member of the object which comes next.
func seek(d *jsontext.Decoder, member string) error {
	_, err := d.ReadToken()
	for err == nil {
		var name jsontext.Token
		if name, err = d.ReadToken(); err == nil && name.String() == member {
			return nil
		}
		if err == nil {
			_, err = d.ReadValue()
		}
	}
	return err
}
