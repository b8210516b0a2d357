package schema

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/dsh-taskforce/sidecar"

// TestImportsGoOneWay: DESIGN.md, section 3.
//
//	schema  <-  store  <-  governor  <-  rpc  <-  cmd/taskforce        clients/gen -> schema
func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	// The folders that a folder may import from, beside itself.
	allowed := map[string][]string{
		"schema":   {},
		"store":    {"schema"},
		"governor": {"schema", "store"},
		"rpc":      {"schema", "store", "governor"},
		"cmd":      {"schema", "store", "governor", "rpc"},
		"clients":  {"schema"},
	}
	for _, p := range packages(t) {
		from := folder(p.ImportPath)
		may, known := allowed[from]
		if !known {
			t.Errorf("%s is in no folder of the layout", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			to := folder(path)
			if to != "" && to != from && !slices.Contains(may, to) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
			if to == "store" && from == "governor" && strings.Contains(path, "/store/") {
				t.Errorf("%s imports an engine: %s", p.ImportPath, path)
			}
			if path == "database/sql" && slices.Contains([]string{"schema", "governor", "rpc"}, from) {
				t.Errorf("%s speaks SQL", p.ImportPath)
			}
			if strings.Contains(path, "jsonrpc2") && slices.Contains([]string{"schema", "store", "governor"}, from) {
				t.Errorf("%s speaks JSON-RPC", p.ImportPath)
			}
		}
	}
}

// TestSidecarStartsLean: what only the generator and the tests need would cost
// every start of a sidecar more than the rest of it. (Of golang.org/x/text the
// PostgreSQL driver links what passwords need, which starts within 0.1 ms.)
func TestSidecarStartsLean(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "./cmd/taskforce")
	cmd.Dir = ".."
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for path := range strings.FieldsSeq(string(output)) {
		for _, heavy := range []string{"jsonschema", "yaml", "golang.org/x/text/message", "go/parser", "schema/openrpc"} {
			if strings.Contains(path, heavy) && !strings.HasPrefix(path, "vendor/") {
				t.Errorf("taskforce links %s", path)
			}
		}
	}
}

// folder is the top-level folder of a package of the project, "" for any other.
func folder(path string) string {
	inside, ok := strings.CutPrefix(path, modulePath+"/")
	if !ok {
		return ""
	}
	top, _, _ := strings.Cut(inside, "/")
	return top
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

// packages lists the packages of the module with what they import outside tests.
func packages(t *testing.T) (list []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}
