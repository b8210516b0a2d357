package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/spf13/cobra"
)

// storeFlags say which store a command works on.
type storeFlags struct {
	root           string
	busyTimeout    time.Duration
	allowNetworkFS bool
}

func (f *storeFlags) register(cmd *cobra.Command) {
	f.busyTimeout = sqlite.DefaultBusyTimeout
	cmd.Flags().Var(textFlag(&f.root, "folder"), "root", "folder of the store (default $TASKFORCE_HOME, else $DSH_HOME/taskforce, else ~/.dsh/taskforce)")
	cmd.Flags().Var(durationFlag(&f.busyTimeout, time.Millisecond, time.Hour), "busy-timeout", "longest wait for another process's transaction")
	cmd.Flags().BoolVar(&f.allowNetworkFS, "allow-network-fs", false, "open a store on a network file system, at your own risk")
	_ = cmd.MarkFlagDirname("root") // fails only if there is no such flag
}

func (f *storeFlags) options(readOnly bool) sqlite.Options {
	return sqlite.Options{BusyTimeout: f.busyTimeout, AllowNetworkFS: f.allowNetworkFS, ReadOnly: readOnly}
}

// openToRead opens the store for a command that must change nothing.
func (f *storeFlags) openToRead(ctx context.Context) (*sqlite.Store, error) {
	folder, err := f.folder()
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, folder, f.options(true))
}

// folder is the root folder that the flags and the environment choose.
func (f *storeFlags) folder() (string, error) {
	if f.root != "" {
		return f.root, nil
	}
	if home := os.Getenv("TASKFORCE_HOME"); home != "" {
		return home, nil
	}
	if home := os.Getenv("DSH_HOME"); home != "" {
		return filepath.Join(home, "taskforce"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home folder for the store: say where it is with --root")
	}
	return filepath.Join(home, ".dsh", "taskforce"), nil
}
