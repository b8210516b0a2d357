package sqlite_test

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// TestExamineNamesWhoReads: a log grows for as long as somebody keeps a read
// open, and the doctor says who.
func TestExamineNamesWhoReads(t *testing.T) {
	root := soundLedger(t)
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "so that there is a log"); err != nil {
		t.Fatal(err)
	}
	cmd := childCommand(t, root)
	cmd.Env = append(cmd.Env, childEnv+"_READING=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "reading\n" {
		t.Fatal(line, err)
	}
	if err := add(s, "run", strings.Repeat("x", 70<<20)); err != nil {
		t.Fatal(err)
	}
	findings, err := s.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Name != "log_size" {
			continue
		}
		if reader := fmt.Sprintf("process %d (", cmd.Process.Pid); f.Level != sqlite.Warning || !strings.Contains(f.Explanation, reader) {
			t.Errorf("%s %s; want %q in it", f.Level, f.Explanation, reader)
		}
		return
	}
	t.Error("nothing is said of the log")
}
