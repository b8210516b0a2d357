package main

import (
	"database/sql"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/script run the program as a person or a script does.
// Beside the commands of package testscript they have those of scriptCommands.
func TestScripts(t *testing.T) {
	t.Parallel()
	vectors, err := filepath.Abs("testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Cmds:                scriptCommands,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("VECTORS", vectors)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
	})
}

var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"fails": fails, "keeps": keeps, "vector": vector, "sql": execute, "truncate": truncate,
}

// fails STATUS PROGRAM ARGS... runs a program that must end with the status and
// say why in one line on standard error.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails STATUS PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("%v, want exit status %d", err, want)
	}
	line := ts.ReadFile("stderr")
	if !strings.HasPrefix(line, "taskforce: ") || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		ts.Fatalf("standard error is not one line of taskforce: %q", line)
	}
}

// keeps FOLDER exec|fails ARGS... is exec or fails of a program that must leave
// the folder, and everything in it, as it was.
func keeps(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: keeps FOLDER exec|fails ARGS...")
	}
	folder := ts.MkAbs(args[0])
	before, err := contents(folder)
	ts.Check(err)
	if args[1] == "fails" {
		fails(ts, false, args[2:])
	} else {
		ts.Check(ts.Exec(args[2], args[3:]...))
	}
	after, err := contents(folder)
	ts.Check(err)
	if !maps.Equal(before, after) {
		ts.Fatalf("%s has changed", folder)
	}
}

// vector NAME ROOT unpacks a database of the other writer into a root folder.
func vector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: vector NAME ROOT")
	}
	root := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(root, 0o700))
	ts.Check(unzipTo(filepath.Join(ts.Getenv("VECTORS"), args[0]+".db.gz"), filepath.Join(root, sqlite.FileName)))
}

// sql ROOT STATEMENTS changes a database behind the back of its sidecars.
func execute(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql ROOT STATEMENTS")
	}
	db, err := sql.Open("sqlite", filepath.Join(ts.MkAbs(args[0]), sqlite.FileName))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(args[1])
	ts.Check(err)
}

// truncate FILE SIZE cuts a file off.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate FILE SIZE")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}
