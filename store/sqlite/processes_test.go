package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// checkStore checks that a file is whole and holds that many tasks.
func checkStore(t *testing.T, root string, tasks int) {
	t.Helper()
	db := reference.Open(t, root)
	if got := reference.Rows(t, db, "PRAGMA integrity_check"); got != "'ok'\n" {
		t.Errorf("integrity: %s", got)
	}
	if got := reference.Rows(t, db, "SELECT count(*), count(DISTINCT title) FROM task"); got != fmt.Sprintf("%d | %d\n", tasks, tasks) {
		t.Errorf("tasks: %s, want %d", got, tasks)
	}
	if got := journal(t, root); got != "wal" {
		t.Errorf("the journal mode is %s", got)
	}
}

// TestManyStoresOpenAnAbsentFileAtOnce, in one process.
func TestManyStoresOpenAnAbsentFileAtOnce(t *testing.T) {
	t.Parallel()
	const openers = 16
	root := t.TempDir()
	ids := make([]string, openers)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range openers {
		group.Go(func() {
			<-start
			s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
			if err != nil {
				t.Errorf("opener %d: %v", i, err)
				return
			}
			defer s.Close()
			ids[i] = s.Identity().ID
			if err := add(s, "run", fmt.Sprint(i)); err != nil {
				t.Errorf("opener %d: %v", i, err)
			}
		})
	}
	close(start)
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two identities: %s and %s", id, ids[0])
		}
	}
	checkStore(t, root, openers)
}

// TestManyProcessesOpenAnAbsentFileAtOnce.
func TestManyProcessesOpenAnAbsentFileAtOnce(t *testing.T) {
	t.Parallel()
	const openers = 16
	root := t.TempDir()
	outputs, starts := make([]bytes.Buffer, openers), make([]io.WriteCloser, openers)
	var group sync.WaitGroup
	for i := range openers {
		cmd := childCommand(t, root)
		cmd.Stdout = &outputs[i]
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		starts[i] = stdin
		group.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("opener %d: %v", i, err)
			}
		})
	}
	for _, start := range starts {
		start.Close()
	}
	group.Wait()
	first := strings.TrimSpace(outputs[0].String())
	for i := range openers {
		if got := strings.TrimSpace(outputs[i].String()); got != first || len(got) != 36 {
			t.Errorf("opener %d answered %q, the first %q", i, got, first)
		}
	}
	checkStore(t, root, openers)
}
