package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
)

// Sixteen sidecars are started at once on a file that does not exist, again and
// again. All of them serve one store: they name the same one, and each one's task
// is in it.
func TestManySidecarsOpenAnAbsentFile(t *testing.T) {
	t.Parallel()
	const sidecars = 16
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	binary := build(t, "cmd/taskforce")
	calls := `{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n" + fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":%q,\"params\":%s}\n",
		schema.OpenTask.Name, encode(t, schema.OpenParams{RunID: "run", Authority: lead, Input: schema.OpenInput{Title: "a task"}}))
	for round := range rounds {
		root := filepath.Join(t.TempDir(), "root")
		var outputs [sidecars]bytes.Buffer
		var started [sidecars]*exec.Cmd
		for i := range sidecars {
			cmd := exec.CommandContext(t.Context(), binary, "serve", "--root", root)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(calls), &outputs[i], &outputs[i]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			started[i] = cmd
		}
		stores, tasks := map[string]bool{}, map[int64]bool{}
		for i, cmd := range started {
			if err := cmd.Wait(); err != nil {
				t.Fatalf("round %d: %v: %s", round, err, &outputs[i])
			}
			for _, line := range bytes.Split(bytes.TrimSpace(outputs[i].Bytes()), []byte("\n")) {
				var r reply
				if err := json.Unmarshal(line, &r); err != nil || r.Error != nil {
					t.Fatalf("round %d: %s", round, line)
				}
				if string(r.ID) == "1" {
					stores[accepted[schema.InitializeResult](t, r).Store.ID] = true
				} else {
					tasks[accepted[schema.Task](t, r).TaskID] = true
				}
			}
		}
		if len(stores) != 1 || len(tasks) != sidecars {
			t.Fatalf("round %d: %d sidecars serve %d stores and opened %d tasks", round, sidecars, len(stores), len(tasks))
		}
		if rows := sound(t, root); rows.Tasks != sidecars {
			t.Errorf("round %d: %d tasks are kept", round, rows.Tasks)
		}
	}
}
