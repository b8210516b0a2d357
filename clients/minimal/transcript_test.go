package minimal

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the transcripts again, with the answers that are given now")

const transcripts = "../testdata/transcripts"

// transcript is a file of clients/testdata, whose README describes the format.
type transcript struct {
	About string            `json:"about"`
	Steps []json.RawMessage `json:"steps"`
}

// step is one line of a transcript. Call, Watch, Changed, Unwatch or Restart says what it is.
type step struct {
	Call    string          `json:"call"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Watch   string          `json:"watch"`
	Changed string          `json:"changed"`
	Unwatch string          `json:"unwatch"`
	Restart *[]string       `json:"restart"`
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, path := range transcriptPaths(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			t.Parallel()
			replay(t, path)
		})
	}
}

// Every method that is answered is called, but for shutdown: that is how each replay ends.
func TestTranscriptsCallEveryMethod(t *testing.T) {
	t.Parallel()
	apart := []string{"governor.watch", "governor.unwatch", "shutdown", "exit", "$/cancelRequest"}
	called := map[string]bool{}
	for _, path := range transcriptPaths(t) {
		for _, text := range read(t, path).Steps {
			called[parse[step](t, text).Call] = true
		}
	}
	c := &connection{t: t, root: t.TempDir(), changed: map[string]bool{}}
	c.start(nil)
	defer c.end()
	reply, err := c.client.Call("rpc.discover", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	type document struct{ Methods []struct{ Name string } }
	for _, m := range parse[document](t, reply.Result).Methods {
		if !called[m.Name] && !slices.Contains(apart, m.Name) {
			t.Errorf("no transcript calls %s", m.Name)
		}
	}
}

// replay plays one transcript on a store of its own.
func replay(t *testing.T, path string) {
	c := &connection{t: t, root: t.TempDir(), changed: map[string]bool{}}
	c.start(nil)
	defer func() { c.end() }()
	var names names
	transcript := read(t, path)
	for i, text := range transcript.Steps {
		answered, err := c.play(parse[step](t, text), &names)
		switch {
		case err != nil && *update && answered != nil:
			transcript.Steps[i] = answered
		case err != nil:
			t.Errorf("step %d, %.200s: %v", i+1, text, err)
			return // what is expected next may never come
		}
	}
	if *update {
		write(t, path, transcript)
	}
}

// connection is the sidecar of the moment.
type connection struct {
	t       *testing.T
	root    string
	client  *Client
	changed map[string]bool
}

func (c *connection) start(args []string) {
	client, err := Start(c.t.Context(), c.notified, binary, append([]string{"--root", c.root}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.client = client
}

func (c *connection) end() {
	if _, err := c.client.Call("shutdown", struct{}{}); err != nil {
		c.t.Error(err)
	}
	if err := c.client.Close(); err != nil {
		c.t.Errorf("the sidecar ended with %v", err)
	}
}

func (c *connection) notified(message Message) {
	type changed struct{ RunID string }
	c.changed[parse[changed](c.t, message.Params).RunID] = true
}

// play takes a step. If the answer is not the expected one it fails, and
// returns the step with the answer that came.
func (c *connection) play(s step, names *names) (answered json.RawMessage, err error) {
	switch {
	case s.Restart != nil:
		c.end()
		c.start(*s.Restart)
		return nil, nil
	case s.Watch != "":
		return nil, c.subscribe("governor.watch", s.Watch, true)
	case s.Unwatch != "":
		return nil, c.subscribe("governor.unwatch", s.Unwatch, false)
	case s.Changed != "":
		return nil, c.await(s.Changed)
	case s.Call == "":
		return nil, errors.New("this is no step")
	}
	reply, err := c.client.Call(s.Call, json.RawMessage(names.fill(s.Params)))
	if err != nil {
		return nil, err
	}
	member, want, got := "result", s.Result, reply.Result
	if reply.Error != nil {
		member, want, got = "error", s.Error, reply.Error.Data
	}
	if err = names.match(want, got); err != nil {
		answered = fmt.Appendf(nil, `{"call":%q,"params":%s,%q:%s}`, s.Call, s.Params, member, names.hide(got))
		err = fmt.Errorf("%s %w", member, err)
	}
	return answered, err
}

func (c *connection) subscribe(method, run string, watching bool) error {
	reply, err := c.client.Call(method, map[string]string{"runId": run})
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`{"run_id":%q,"watching":%t}`, run, watching); string(reply.Result) != want {
		return fmt.Errorf("want %s, got %s", want, reply.Result)
	}
	return nil
}

// await waits until a change of the run was notified.
func (c *connection) await(run string) error {
	for !c.changed[run] {
		if _, err := c.client.Receive(); err != nil {
			return err
		}
	}
	delete(c.changed, run)
	return nil
}

func transcriptPaths(t *testing.T) []string {
	paths, err := filepath.Glob(filepath.Join(transcripts, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	return paths
}

func read(t *testing.T, path string) transcript {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parse[transcript](t, text)
}

// write writes one step a line.
func write(t *testing.T, path string, transcript transcript) {
	text := fmt.Appendf(nil, "{\"about\":%q,\"steps\":[\n", transcript.About)
	for i, step := range transcript.Steps {
		if i > 0 {
			text = append(text, ",\n"...)
		}
		text = append(text, step...)
	}
	if err := os.WriteFile(path, append(text, "\n]}\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
}

func parse[T any](t *testing.T, text []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%.200s: %v", text, err)
	}
	return value
}
