package main

import (
	"io"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
)

// printJSON prints v for a script, indented for whoever looks at it.
func printJSON(w io.Writer, v any) error {
	text, err := schema.Encode(v)
	if err != nil {
		return err
	}
	value := jsontext.Value(text)
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err = w.Write(append(value, '\n'))
	return err
}
