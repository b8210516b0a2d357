package main

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
)

// A change that another process makes is told after it is committed: whoever
// is told and looks sees it. Changes that come together may be told together.
func TestWatchOfAnotherProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	watching, changing := serve(t, root), serve(t, root)
	const runs = 10
	name := func(n int) string { return fmt.Sprint("run ", n) }
	for n := range runs {
		result(watching, schema.Watch, schema.RunParams{RunID: name(n)})
	}
	for n := range runs {
		changing.openTask("nobody watches", "")
		task := changing.openTask(name(n), "worker") // opened and claimed
		asked := 0
		for claimed := false; !claimed || asked > 0; {
			line, err := watching.out.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var message struct {
				Method string         `json:"method"`
				Params jsontext.Value `json:"params"`
				reply
			}
			decode(t, line, &message)
			if message.Method == rpc.Changed {
				var told schema.ChangedParams
				if decode(t, message.Params, &told); told.RunID == "nobody watches" {
					t.Fatal("told of a run that is not watched")
				}
				if told.RunID != name(n) {
					continue // of the last change of the run before
				}
				watching.send(schema.ListTasks.Name, schema.ListParams{RunID: name(n), Authority: lead})
				asked++
				continue
			}
			asked--
			tasks := accepted[schema.TasksPage](t, message.reply).Items
			if len(tasks) != 1 || tasks[0].TaskID != task {
				t.Fatalf("told of a change of %s, but it has %v", name(n), tasks)
			}
			claimed = tasks[0].Status == schema.TaskClaimed // else another notification follows
		}
	}
	if status := watching.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
