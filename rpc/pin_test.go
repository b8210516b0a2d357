package rpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openStore opens a store of the test's own.
func openStore(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ask sends a request and returns the reply as it stands on the wire.
func (h *host) ask(method, params string) (reply, string) {
	h.t.Helper()
	h.write(request(1, method, params))
	line, err := h.out.ReadString('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		h.t.Fatal(err)
	}
	return r, line
}

// granted is ask for what must succeed.
func (h *host) granted(method, params string) jsontext.Value {
	h.t.Helper()
	r, line := h.ask(method, params)
	if r.Error != nil {
		h.t.Fatalf("%s: %s", method, line)
	}
	return r.Result
}

// reservingAll are the parameters of an admission that writes the resources.
func reservingAll(run string, task int, session string, resources ...string) string {
	return fmt.Sprintf(`[{"operation_key":"of task %[1]d","task_id":%[1]d,"generation":0,"mode":"write","kind":"new","resources":["%[2]s"]},%[3]q,{"role":"lead","sessionId":%[4]q}]`,
		task, strings.Join(resources, `","`), run, session)
}

// held is a store in which a run that must not be seen holds "shared", and the
// pinned run holds "own".
func held(t *testing.T) store.Store {
	s := openStore(t)
	h := connect(t, s, rpc.Options{})
	for task, run := range []string{"hidden run", "run"} {
		h.granted("task.open", fmt.Sprintf(`[{"title":"hidden title"},%q,{"role":"lead","sessionId":"hidden session"}]`, run))
		resource := []string{"shared", "own"}[task]
		h.granted("governor.reserve", reservingAll(run, task+1, "hidden session", resource))
	}
	h.granted("task.open", `[{"title":"a"},"run",{"role":"lead","sessionId":"s"}]`)
	h.orderly()
	return s
}

// Whatever way a pinned connection asks, it learns of another run's hold only
// the key, the mode and the state, and everything of its own run's.
func TestPinnedConnectionSeesItsOwnRun(t *testing.T) {
	t.Parallel()
	s := held(t)
	asking := reservingAll("run", 3, "s", "own", "shared")
	inTransaction := func(method string) string {
		return fmt.Sprintf(`[[{"method":%q,"params":%s}]]`, method, asking)
	}
	ways := map[string]func(h *host) string{
		"reserve": func(h *host) string { _, line := h.ask("governor.reserve", asking); return line },
		"check":   func(h *host) string { _, line := h.ask("governor.check", asking); return line },
		"reserve in a transaction": func(h *host) string {
			_, line := h.ask("store.transaction", inTransaction("governor.reserve"))
			return line
		},
		"check in a transaction": func(h *host) string {
			_, line := h.ask("store.transaction", inTransaction("governor.check"))
			return line
		},
		"batch": func(h *host) string {
			h.write("[" + request(1, "governor.check", asking) + "," + request(2, "governor.reserve", asking) + "]")
			line, err := h.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return line
		},
	}
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			pinned := connect(t, s, rpc.Options{Pinned: schema.PinnedAuthority{RunID: "run"}})
			free := connect(t, s, rpc.Options{})
			redacted, whole := ask(pinned), ask(free)
			if strings.Contains(redacted, "hidden run") {
				t.Errorf("the pinned connection learns %s", redacted)
			}
			if !strings.Contains(redacted, `{"resource_key":"shared","mode":"write","state":"reserved"}`) {
				t.Errorf("the pinned connection does not learn of the hold: %s", redacted)
			}
			if !strings.Contains(redacted, `"resource_key":"own","mode":"write","state":"reserved","execution":{`) {
				t.Errorf("the pinned connection does not see its own run: %s", redacted)
			}
			if !strings.Contains(whole, `"run_id":"hidden run"`) {
				t.Errorf("another connection does not learn who holds: %s", whole)
			}
			pinned.orderly()
			free.orderly()
		})
	}
}

// governor.runs lists the pinned run only, in a transaction too, and every other
// call that names a run refuses another.
func TestPinnedConnectionNamesItsOwnRun(t *testing.T) {
	t.Parallel()
	h := connect(t, held(t), rpc.Options{Pinned: schema.PinnedAuthority{RunID: "run", Role: schema.Worker, SessionID: "s"}})
	for _, result := range []string{
		string(h.granted("governor.runs", "{}")),
		string(h.granted("store.transaction", `[[{"method":"governor.runs","params":[]}]]`)),
	} {
		if strings.Contains(result, "hidden") || strings.Count(result, "run_id") != 1 {
			t.Errorf("governor.runs lists %s", result)
		}
	}
	for _, spec := range schema.Methods {
		if !slices.Contains(spec.Names(), "runId") {
			continue
		}
		for _, call := range foreign(t, spec) {
			if r, line := h.ask(spec.Name, call); r.Error == nil || r.Error.Data.Reason != schema.ReasonPinned {
				t.Errorf("%s with %s: %s", spec.Name, call, line)
			}
			if !spec.Is(schema.Composes) {
				continue
			}
			r, line := h.ask("store.transaction", fmt.Sprintf(`[[{"method":%q,"params":%s}]]`, spec.Name, call))
			if r.Error == nil || r.Error.Data.Reason != schema.ReasonPinned {
				t.Errorf("%s in a transaction with %s: %s", spec.Name, call, line)
			}
		}
	}
	h.orderly()
}

// inputs are valid inputs of the methods that take one.
var inputs = map[string]string{
	"governor.reserve":      `{"operation_key":"k","task_id":1,"generation":0,"mode":"read","kind":"new","resources":[]}`,
	"governor.check":        `{"operation_key":"k","task_id":1,"generation":0,"mode":"read","kind":"new","resources":[]}`,
	"governor.bind":         `{"reservation_id":"r","generation":1,"session_id":"s"}`,
	"governor.markUnknown":  `{"reservation_id":"r","generation":1,"reason":"x"}`,
	"governor.settle":       `{"reservation_id":"r","generation":1,"proof":{"kind":"never_started"}}`,
	"governor.extendBudget": `{"reason":"x","max_active":9}`,
	"task.open":             `{"title":"x"}`,
	"task.claim":            `{"task_id":1,"owner":"o","owner_session":"s"}`,
	"task.submit":           `{"task_id":1}`,
	"task.accept":           `{"task_id":1}`,
	"task.reject":           `{"task_id":1,"reason":"x"}`,
	"task.cancel":           `{"task_id":1}`,
	"task.get":              `{"task_id":1}`,
	"task.history":          `{"task_id":1}`,
	"task.list":             `{}`,
}

// foreign are parameters of a method that name another run, role or session
// than run, worker and s.
func foreign(t *testing.T, spec *schema.Spec) []string {
	t.Helper()
	if !slices.Contains(spec.Names(), "authority") {
		view := ""
		if slices.Contains(spec.Names(), "view") {
			view = `,"view":"audit"`
		}
		return []string{`{"runId":"hidden run"` + view + `}`}
	}
	input, ok := inputs[spec.Name]
	if !ok {
		t.Fatalf("there is no input for %s", spec.Name)
	}
	return []string{
		`[` + input + `,"hidden run",{"role":"worker","sessionId":"s"}]`,
		`[` + input + `,"run",{"role":"lead","sessionId":"s"}]`,
		`[` + input + `,"run",{"role":"worker","sessionId":"hidden session"}]`,
	}
}
