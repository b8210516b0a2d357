package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"go.uber.org/goleak"
)

// childEnv makes the test binary play another process on the store in the
// folder that it names.
const childEnv = "TASKFORCE_TEST_CHILD"

func TestMain(m *testing.M) {
	if root := os.Getenv(childEnv); root != "" {
		if os.Getenv(childEnv+"_READING") != "" {
			childReads(root)
		} else {
			child(root)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child waits for its input to end, opens the store, adds a task and prints
// the code of the first failure, or the store's identity.
func child(root string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	options := sqlite.Options{ReadOnly: os.Getenv(childEnv+"_READONLY") != ""}
	s, err := sqlite.Open(context.Background(), root, options)
	if err == nil {
		defer s.Close()
		if !options.ReadOnly {
			err = add(s, "run", fmt.Sprint(os.Getpid()))
		}
	}
	var known *schema.Error
	switch {
	case err == nil:
		fmt.Println(s.Identity().ID)
	case errors.As(err, &known):
		fmt.Println(known.Code)
	default:
		fmt.Println(err)
	}
}

// childReads keeps a read open until its input ends, and says when it has begun.
func childReads(root string) {
	s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
	if err == nil {
		defer s.Close()
		err = s.Read(context.Background(), func(tx store.Tx) error {
			fmt.Println("reading")
			_, _ = io.Copy(io.Discard, os.Stdin)
			return nil
		})
	}
	if err != nil {
		fmt.Println(err)
	}
}

// childCommand is the test binary as the other process. Its folder must not be
// read by this process while the child is at work.
func childCommand(t *testing.T, root string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), childEnv+"="+root)
	cmd.Stderr = os.Stderr
	return cmd
}
