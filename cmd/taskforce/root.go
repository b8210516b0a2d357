package main

import (
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
	cmd.Flags().StringVar(&f.root, "root", "", "folder of the store (default $TASKFORCE_HOME, else $DSH_HOME/taskforce, else ~/.dsh/taskforce)")
	cmd.Flags().DurationVar(&f.busyTimeout, "busy-timeout", sqlite.DefaultBusyTimeout, "longest wait for another process's transaction")
	cmd.Flags().BoolVar(&f.allowNetworkFS, "allow-network-fs", false, "open a store on a network file system, at your own risk")
}

func (f *storeFlags) options(readOnly bool) sqlite.Options {
	return sqlite.Options{BusyTimeout: f.busyTimeout, AllowNetworkFS: f.allowNetworkFS, ReadOnly: readOnly}
}

// folder is the root folder that the flags and the environment choose.
func (f *storeFlags) folder() (string, error) {
	if f.busyTimeout < 0 {
		return "", errors.New("--busy-timeout must not be negative")
	}
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
		return "", errors.New("there is no home folder: say --root")
	}
	return filepath.Join(home, ".dsh", "taskforce"), nil
}
