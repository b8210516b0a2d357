package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/go-json-experiment/json/jsontext"
)

// Every recorded trace is replayed through a real sidecar, and every answer is
// compared with that of the reference implementation. This is the logic of
// testdata/vectors/replay.py, which replays the traces against any server.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*/trace-*.json")
	if err != nil || len(files) != 40 {
		t.Fatalf("%d traces found, want 40 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/vectors/"), func(t *testing.T) {
			t.Parallel()
			replayFile(t, file)
		})
	}
}

// The traces that begin with an empty store have the same answers on PostgreSQL.
func TestVectorsOnPostgres(t *testing.T) {
	server := pgtest.Shared(t)
	files, err := filepath.Glob("testdata/vectors/plain/trace-*.json")
	if err != nil || len(files) != 24 {
		t.Fatalf("%d traces found, want 24 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			url := server.URL(server.Schema())
			replayTrace(t, readTrace(t, file), func() *sidecar { return launch(t, program(t, "serve", "--store", url)) })
		})
	}
}

func readTrace(t *testing.T, file string) object {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text).(object)
}

// replayFile replays a trace on the embedded engine.
func replayFile(t *testing.T, file string) {
	trace := readTrace(t, file)
	root := t.TempDir()
	if archive, ok := trace.get("start_db").(string); ok {
		unzip(t, filepath.Join(filepath.Dir(file), archive), filepath.Join(root, sqlite.FileName))
		sound(t, root, "accounting") // which the legacy ones lack until they are served
	}
	replayTrace(t, trace, func() *sidecar { return serve(t, root) })
	sound(t, root)
}

// replayTrace makes the steps of a trace, with sidecars that start starts.
func replayTrace(t *testing.T, trace object, start func() *sidecar) {
	known := bindings{}
	if given, ok := trace.get("bindings").(object); ok {
		for _, m := range given {
			known[m.name] = m.value.(string)
		}
	}
	s := start()
	for i, step := range trace.get("steps").([]any) {
		if s = replayStep(t, s, start, step.(object), known); t.Failed() {
			t.Fatalf("at step %d", i)
		}
	}
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// replayStep makes one step and returns the sidecar for the next one.
func replayStep(t *testing.T, s *sidecar, start func() *sidecar, step object, known bindings) *sidecar {
	if step.get("restart") != nil {
		if status := s.end(); status != 0 {
			t.Errorf("exit status %d", status)
		}
		return start()
	}
	method := step.get("call").(string)
	r := s.call(method, jsontext.Value(textOf(known.fill(step.get("params")))))
	code, refused := step.get("error").(string)
	switch {
	case refused && r.Error == nil:
		t.Errorf("%s: want %s, got the result %s", method, code, r.Result)
	case refused && string(r.Error.Data.Code) != code:
		t.Errorf("%s: want %s, got %s: %s", method, code, r.Error.Data.Code, r.Error.Message)
	case !refused && r.Error != nil:
		t.Errorf("%s: want a result, got %s: %s", method, r.Error.Data.Code, r.Error.Message)
	case !refused:
		want, got := step.get("result"), parse(t, r.Result)
		difference := ""
		if method == "governor.snapshot" {
			difference = known.orderHolds(want.(object), got.(object))
		}
		if difference == "" {
			difference = known.differ(want, got, strings.HasPrefix(method, "governor."), "result")
		}
		if difference != "" {
			t.Errorf("%s: %s", method, difference)
		}
	}
	return s
}

// bindings maps the names that a trace gives to reservation ids ("$r1") to the ids.
type bindings map[string]string

var (
	idName    = regexp.MustCompile(`^\$r\d+$`)
	timeValue = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// fill replaces names by what they are bound to.
func (b bindings) fill(value any) any {
	switch value := value.(type) {
	case string:
		if id, ok := b[value]; ok {
			return id
		}
	case []any:
		filled := make([]any, len(value))
		for i, item := range value {
			filled[i] = b.fill(item)
		}
		return filled
	case object:
		filled := make(object, len(value))
		for i, m := range value {
			filled[i] = member{m.name, b.fill(m.value)}
		}
		return filled
	}
	return value
}

// differ returns the first difference, "" if there is none. It binds a name at
// its first appearance, so members are compared in the order of the trace.
func (b bindings) differ(want, got any, exact bool, path string) string {
	switch want := want.(type) {
	case string:
		return b.differText(want, got, path)
	case object:
		if got, ok := got.(object); ok {
			return b.differObject(want, got, exact, path)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return b.differArray(want, got, exact, path)
		}
	default: // a number, a boolean or null
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: want %s, got %s", path, textOf(want), textOf(got))
}

func (b bindings) differText(want string, got any, path string) string {
	text, ok := got.(string)
	switch {
	case !ok:
	case want == "$time":
		ok = timeValue.MatchString(text)
	case idName.MatchString(want):
		if b[want] == "" {
			b[want] = text
		}
		ok = b[want] == text
	default:
		ok = want == text
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s: want %q, got %s", path, want, textOf(got))
}

func (b bindings) differObject(want, got object, exact bool, path string) string {
	for _, m := range got {
		if exact && !want.has(m.name) {
			return fmt.Sprintf("%s.%s: unexpected", path, m.name)
		}
	}
	for _, m := range want {
		if !got.has(m.name) {
			return fmt.Sprintf("%s.%s: missing", path, m.name)
		}
		if difference := b.differ(m.value, got.get(m.name), exact, path+"."+m.name); difference != "" {
			return difference
		}
	}
	return ""
}

func (b bindings) differArray(want, got []any, exact bool, path string) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%s: want %d items, got %d", path, len(want), len(got))
	}
	for i := range want {
		if difference := b.differ(want[i], got[i], exact, fmt.Sprintf("%s[%d]", path, i)); difference != "" {
			return difference
		}
	}
	return ""
}

// orderHolds checks that the holds are in the order of their random reservation
// ids, and then puts both sides in the order of the names that the trace gives
// to the ids.
func (b bindings) orderHolds(want, got object) string {
	wanted, held := want.get("holds").([]any), got.get("holds").([]any)
	if !slices.IsSortedFunc(held, holdOrder(nil)) {
		return "result.holds: not ordered by reservation_id, resource_key"
	}
	names := map[string]string{}
	for name, id := range b {
		names[id] = name
	}
	slices.SortFunc(wanted, holdOrder(nil))
	slices.SortFunc(held, holdOrder(names))
	return ""
}

// holdOrder compares holds by their reservation, or its name if names are given, then by the bytes of the key.
func holdOrder(names map[string]string) func(a, b any) int {
	reservation := func(hold any) string {
		id := hold.(object).get("reservation_id").(string)
		if names != nil {
			return names[id]
		}
		return id
	}
	key := func(hold any) string { return hold.(object).get("resource_key").(string) }
	return func(a, b any) int {
		if order := strings.Compare(reservation(a), reservation(b)); order != 0 {
			return order
		}
		return strings.Compare(key(a), key(b))
	}
}

// unzip unpacks an archive to a file.
func unzip(t *testing.T, archive, to string) {
	t.Helper()
	if err := unzipTo(archive, to); err != nil {
		t.Fatal(err)
	}
}

func unzipTo(archive, to string) error {
	from, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer from.Close()
	unpacked, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
