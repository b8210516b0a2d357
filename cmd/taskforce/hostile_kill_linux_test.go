package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// changing are the system calls by which a program changes files.
const changing = "pwrite64,ftruncate,fsync,fdatasync,?unlink,unlinkat,?link,linkat,?rename,renameat,?mkdir,mkdirat"

// killings kill the released program at each of its changes of a file.
type killings struct {
	binary string
	// prepare fills a new folder, and check looks at what is left in it.
	prepare func(t *testing.T, folder string)
	args    func(folder string) []string
	input   string
	check   func(t *testing.T, k *killings, folder string)
}

func (k *killings) program(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), k.binary, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // strace counts by thread
	return cmd
}

// run runs the program to its end.
func (k *killings) run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := k.program(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// at kills the program before its n-th change. It reports false if there are
// fewer.
func (k *killings) at(t *testing.T, n int, folder string) bool {
	t.Helper()
	inject := fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", changing, n)
	cmd, _ := traced(t, []string{"-e", "trace=" + changing, "-e", inject}, k.program(t, k.args(folder)...))
	cmd.Stdin = strings.NewReader(k.input)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		return true
	}
	t.Fatalf("change %d: %v: %s", n, err, out)
	return false
}

// everywhere kills the program at each change, each time in another folder.
func (k *killings) everywhere(t *testing.T) {
	for n, killed := 1, true; killed; n++ {
		folder := filepath.Join(t.TempDir(), "root")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		k.prepare(t, folder)
		killed = k.at(t, n, folder)
		if k.check(t, k, folder); t.Failed() {
			t.Fatalf("after a kill at change %d", n)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if !killed && n < 10 {
			t.Errorf("there are only %d changes", n-1)
		}
	}
}

// calls are those of a host that opens a task and admits an execution of it.
func calls(t *testing.T, run string, task int64) string {
	request := func(method string, params any) string {
		return fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":%q,\"params\":%s}\n", method, encode(t, params))
	}
	return request(schema.OpenTask.Name, schema.OpenParams{RunID: run, Authority: lead, Input: schema.OpenInput{Title: "a task"}}) +
		request(schema.Reserve.Name, reserving(run, task, 0, schema.Write, schema.Reuse, "repo"))
}

func serving(folder string) []string { return []string{"serve", "--root", folder} }

// Whatever is killed in the middle has done all or nothing, and the next one
// goes on from there.
func TestKilledAtEveryChange(t *testing.T) {
	t.Parallel()
	binary := build(t, "cmd/taskforce")
	nothing := func(*testing.T, string) {}
	root := newStore(t)
	backup := func(folder string) []string {
		return []string{"backup", filepath.Join(folder, "backup.db"), "--root", root}
	}
	tests := map[string]*killings{
		"a sidecar that makes a store": {
			prepare: nothing, args: serving, input: calls(t, "run", 1),
			check: func(t *testing.T, k *killings, folder string) {
				s := launch(t, k.program(t, serving(folder)...))
				s.reserve("other", "s", schema.Write, "other")
				if status := s.end(); status != 0 {
					t.Errorf("exit status %d", status)
				}
				sound(t, folder)
			},
		},
		"a sidecar that migrates a file": {
			prepare: func(t *testing.T, folder string) {
				unzip(t, "testdata/vectors/legacy/trace-2003.db.gz", filepath.Join(folder, sqlite.FileName))
			},
			args: serving, input: calls(t, "run-a", 6),
			check: func(t *testing.T, k *killings, folder string) {
				if rows := sound(t, folder, "accounting"); rows.Charges != 0 && rows.Charges != rows.Reservations {
					t.Errorf("%d of %d reservations are migrated", rows.Charges, rows.Reservations)
				}
				s := launch(t, k.program(t, serving(folder)...))
				result(s, schema.GetSnapshot, schema.RunParams{RunID: "run-a"}) // which migrates before it answers
				if status := s.end(); status != 0 {
					t.Errorf("exit status %d", status)
				}
				sound(t, folder)
			},
		},
		"a backup": {
			prepare: nothing, args: backup,
			check: func(t *testing.T, k *killings, folder string) {
				path := filepath.Join(folder, "backup.db")
				if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
					k.run(t, backup(folder)...) // what the other one has left is in nobody's way
				}
				k.run(t, "restore", path, "--root", filepath.Join(folder, "restored"))
				sound(t, root)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.binary = binary
			test.everywhere(t)
		})
	}
}

// A disk that fails now and then, whenever it does, costs the calls that it hit, and
// they are told so. The sidecar goes on, and what is acknowledged is kept.
func TestFailureAtEveryChange(t *testing.T) {
	t.Parallel()
	binary := build(t, "cmd/taskforce")
	content, err := os.ReadFile(filepath.Join(newStore(t), sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range []string{"EIO", "ENOSPC"} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			k := &killings{binary: binary}
			hits := 0
			for told, n := true, 1; told; n++ {
				l := &ledger{t: t, root: t.TempDir(), titles: map[int64]string{}, binary: binary}
				if err := os.WriteFile(l.path(""), content, 0o600); err != nil {
					t.Fatal(err)
				}
				if told = l.failing(k, n, failure); told {
					hits++
				}
				l.kept()
			}
			if hits < 10 {
				t.Errorf("only %d failures hit a sidecar", hits)
			}
		})
	}
}

// failing serves the store with a disk that fails at its n-th change. It reports
// whether anybody was told.
func (l *ledger) failing(k *killings, n int, failure string) (told bool) {
	l.t.Helper()
	const calls = "pwrite64,fsync,fdatasync"
	inject := fmt.Sprintf("inject=%s:error=%s:when=%d", calls, failure, n)
	cmd, _ := traced(l.t, []string{"-e", "trace=" + calls, "-e", inject}, k.program(l.t, serving(l.root)...))
	s := launch(l.t, cmd)
	if !s.begins() {
		s.refusesToStart("E_STORE_")
		return true
	}
	const inARow = 5
	refused, accepted := 0, 0
	for accepted < inARow && refused < 50 { // the disk fails once for each thread
		if l.asked(s, 2, 10, schema.ErrStoreFull, schema.ErrStoreIO) == 0 {
			accepted++
		} else {
			accepted = 0
			refused++
		}
	}
	if accepted < inARow {
		l.t.Errorf("change %d: the sidecar does not go on although the disk is well again", n)
	}
	if status := s.end(); status != 0 {
		l.t.Errorf("exit status %d", status)
	}
	return refused > 0
}
