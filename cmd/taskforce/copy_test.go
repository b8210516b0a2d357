package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// taskforce runs the program and returns what it prints and its exit status.
func taskforce(t *testing.T, args ...string) (output string, status int) {
	t.Helper()
	cmd := program(t, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// succeeds runs the program, which must.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	output, status := taskforce(t, args...)
	if status != 0 {
		t.Fatalf("taskforce %s: exit status %d: %s", strings.Join(args, " "), status, output)
	}
	return output
}

// refuses runs the program, which must refuse for a reason.
func refuses(t *testing.T, reason string, args ...string) {
	t.Helper()
	output, status := taskforce(t, args...)
	if status != 1 || !strings.Contains(output, reason) {
		t.Errorf("taskforce %s: exit status %d: %s; want 1 and %q", strings.Join(args, " "), status, output, reason)
	}
}

// The traces that begin with a file of the other writer have the same answers
// on PostgreSQL after a copy, and after another copy back.
func TestVectorsAfterCopy(t *testing.T) {
	server := pgtest.Shared(t)
	files, err := filepath.Glob("testdata/vectors/[il]*/trace-*.json")
	if err != nil || len(files) != 16 {
		t.Fatalf("%d traces found, want 16 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/vectors/"), func(t *testing.T) {
			t.Parallel()
			trace := readTrace(t, file)
			root, url, back := t.TempDir(), server.URL(server.Schema()), t.TempDir()
			unzip(t, filepath.Join(filepath.Dir(file), trace.get("start_db").(string)), filepath.Join(root, sqlite.FileName))
			first := digestOf(t, succeeds(t, "copy", "--from", root, "--to", url, "--json"))
			if again := digestOf(t, succeeds(t, "copy", "--from", url, "--to", back, "--json")); again != first {
				t.Errorf("there and back, %s became %s", first, again)
			}
			replayTrace(t, trace, func() *sidecar { return serveURL(t, url) })
			succeeds(t, "verify", "--store", url)
			replayTrace(t, trace, func() *sidecar { return serve(t, back) })
			sound(t, back)
		})
	}
}

func digestOf(t *testing.T, output string) string {
	t.Helper()
	var moved movedLedger
	decode(t, []byte(output), &moved)
	if len(moved.Digest) != 64 || moved.StoreID == "" {
		t.Errorf("got %+v", moved)
	}
	return moved.Digest
}

func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	root, url := t.TempDir(), server.URL(server.Schema())
	s := serve(t, root)
	task := s.openTask("run", "worker")
	result(s, schema.Reserve, reserving("run", task, 0, schema.Write, schema.New, "repo", strings.Repeat("long ", 2000), "\x00\x01"))
	refuses(t, "sidecars have the source open", "copy", "--from", root, "--to", url)
	succeeds(t, "copy", "--from", root, "--to", url, "--live")
	s.end()
	refuses(t, "is not empty", "copy", "--from", root, "--to", url)
	refuses(t, string(schema.ErrStoreConfig), "copy", "--from", filepath.Join(root, "absent"), "--to", server.URL(server.Schema()))
	refuses(t, "there is no store", "copy", "--from", server.URL(server.Schema()), "--to", t.TempDir())

	other := serveURL(t, url)
	other.openTask("run", "worker")
	refuses(t, "sidecars have the source open", "copy", "--from", url, "--to", t.TempDir())
	other.end()
}

// The commands for people say the same of a ledger on either engine.
func TestCommandsOnPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.URL(server.Schema())
	secret := strings.Replace(url, "@", ":a-secret@", 1)
	s := serveURL(t, secret)
	task := s.openTask("run", "worker")
	r := result(s, schema.Reserve, reserving("run", task, 0, schema.Write, schema.New, "repo"))
	location := result(s, schema.Initialize, schema.InitializeParams{}).Store.Location
	s.end()
	for _, c := range []struct{ want, command string }{
		{"run", "status"}, {r.ReservationID, "status run"}, {"sound: 1 tasks", "verify"},
		{"PostgreSQL 1", "doctor"}, {"no run was ever over a limit", "doctor"}, {"fsync is off", "doctor"},
	} {
		output, status := taskforce(t, append(strings.Fields(c.command), "--store", secret)...)
		if want := 0; !strings.Contains(output, c.want) || c.command != "doctor" && status != want {
			t.Errorf("%s: exit status %d, %q is not in:\n%s", c.command, status, c.want, output)
		}
		location += output
	}
	if strings.Contains(location, "a-secret") {
		t.Errorf("the password is told: %s", location)
	}
}

// What is damaged behind the sidecars' back is found and explained.
func TestVerifyOnPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for i, damage := range []struct{ statement, check string }{
		{"UPDATE governor_reservation SET state = 'settled' WHERE task_id = 1", "holds_active"},
		{"DELETE FROM governor_hold", "holds_complete"},
		{"DELETE FROM governor_audit WHERE action = 'reserve' AND run_id = 'run'", "audit_admission"},
		{"UPDATE governor_reservation SET generation = 7", "generations"},
		{"UPDATE governor_retry_charge SET retry_charge = 2", "charge_amount"},
		{"INSERT INTO governor_run (run_id, max_active, max_writers, max_created, max_retries) VALUES ('run', 1, 1, 1, 1)", "audit_budget"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			name := server.Schema()
			s := serveURL(t, server.URL(name))
			task := s.openTask("run", "worker")
			result(s, schema.Reserve, reserving("run", task, 0, schema.Write, schema.New, "repo"))
			s.end()
			administer(t, server.Connect(t, name), damage.statement)
			output, status := taskforce(t, "verify", "--store", server.URL(name))
			if status != 1 || !strings.Contains(output, damage.check) {
				t.Errorf("%s: exit status %d, want 1 and %s: %s", damage.statement, status, damage.check, output)
			}
		})
	}
}
