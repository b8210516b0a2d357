package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"golang.org/x/sys/unix"
)

func init() {
	provocations[schema.ErrStoreFull] = provokeStoreFull
	provocations[schema.ErrStoreIO] = provokeStoreIO
}

// The disk does not take the log of a call.
func provokeStoreIO(t *testing.T) {
	root := newStore(t)
	cmd, _ := traced(t, []string{"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO"}, program(t, "serve", "--root", root))
	s := launch(t, cmd)
	s.refused(schema.ErrStoreIO, "task.submit", noting("run", 1))
	result(s, schema.GetTask, schema.TaskParams{RunID: "run", Authority: lead, Input: schema.TaskInput{TaskID: 1}})
}

// mount mounts a file system; whoever mounts it unmounts it. Without the right to it the test is
// skipped, but not where everything must be tested.
func mount(t *testing.T, source, kind, options string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	err := unix.Mount(source, folder, kind, 0, options)
	switch {
	case err == nil:
	case errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true":
		t.Skip("mounting takes the superuser")
	default:
		t.Fatalf("mounting %s: %v", kind, err)
	}
	return folder
}

func unmount(t *testing.T, folder string) {
	t.Helper()
	if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
		t.Error(err)
	}
}

// The disk is filled by calls, which are kept whole or not at all, and the store
// goes on when there is room again.
func provokeStoreFull(t *testing.T) {
	disk := mount(t, "tmpfs", "tmpfs", "size=2m,mode=700")
	t.Cleanup(func() { unmount(t, disk) })
	root := filepath.Join(disk, "root")
	s := serve(t, root)
	note := strings.Repeat("x", 20_000)
	open := schema.OpenParams{RunID: "run", Authority: lead, Input: schema.OpenInput{Title: "a task", Note: &note}}
	var kept int64
	full := s.call("task.open", open)
	for ; full.Error == nil; full = s.call("task.open", open) {
		kept++
	}
	full.refused(t, schema.ErrStoreFull)

	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	last := result(s, schema.OpenTask, open).TaskID
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	s = serve(t, root)
	tasks := result(s, schema.ListTasks, schema.ListParams{RunID: "run", Authority: lead, Input: schema.ListInput{Limit: 1000}})
	if n := int64(len(tasks.Items)); n != kept+1 || tasks.Items[n-1].TaskID != last {
		t.Errorf("%d tasks are kept, want the %d acknowledged", n, kept+1)
	}
}
