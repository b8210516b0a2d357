package openrpc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// TestEnumerationsAreComplete: every constant of a type that the wire spells as
// an enumeration is one of its values.
func TestEnumerationsAreComplete(t *testing.T) {
	t.Parallel()
	declared := constants(t)
	for enum, values := range enums {
		var want []string
		for _, value := range values {
			want = append(want, reflect.ValueOf(value).String())
			if reflect.TypeOf(value) != enum {
				t.Errorf("%v is a %T, not a %s", value, value, enum.Name())
			}
		}
		got := declared[enum.Name()]
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: declared are %v, published %v", enum.Name(), got, want)
		}
	}
}

// constants maps the name of each type to the text constants of it in package schema.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	found := map[string][]string{}
	for _, name := range []string{"errors.go", "governor.go", "task.go", "session.go"} {
		file, err := parser.ParseFile(set, "../"+name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			named, isNamed := spec.Type.(*ast.Ident)
			literal, isLiteral := spec.Values[0].(*ast.BasicLit)
			if isNamed && isLiteral && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[named.Name] = append(found[named.Name], value)
			}
			return true
		})
	}
	return found
}
