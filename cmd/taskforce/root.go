package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/transfer"
	"github.com/spf13/cobra"
)

// storeFlags say which store a command works on.
type storeFlags struct {
	root, url      string
	busyTimeout    time.Duration
	allowNetworkFS bool
}

func (f *storeFlags) register(cmd *cobra.Command) {
	f.busyTimeout = sqlite.DefaultBusyTimeout
	cmd.Flags().Var(textFlag(&f.root, "folder"), "root", "folder of the store (default $TASKFORCE_HOME, else $DSH_HOME/taskforce, else ~/.dsh/taskforce)")
	cmd.Flags().Var(textFlag(&f.url, "URL"), "store", "PostgreSQL database instead of the file in the root folder: postgres://user@host/database?schema=taskforce (default $TASKFORCE_STORE)")
	cmd.Flags().Var(durationFlag(&f.busyTimeout, time.Millisecond, time.Hour), "busy-timeout", "longest wait for another process's transaction")
	cmd.Flags().BoolVar(&f.allowNetworkFS, "allow-network-fs", false, "open a store on a network file system, at your own risk")
	_ = cmd.MarkFlagDirname("root") // fails only if there is no such flag
}

// openStore is a store that can be examined.
type openStore interface {
	store.Store
	// Examine answers every question about the store, Verify those about its rows.
	Examine(context.Context) ([]store.Finding, error)
	Verify(context.Context) (*store.Verification, error)
}

// onServer is a store on a server, whose rows are verified in a file.
type onServer struct{ *postgres.Store }

func (s onServer) Verify(ctx context.Context) (*store.Verification, error) {
	return transfer.Verify(ctx, s, s.Identity().ID)
}

func (s onServer) Examine(ctx context.Context) ([]store.Finding, error) {
	findings, err := s.Store.Examine(ctx)
	if err != nil {
		return nil, err
	}
	accounts, err := transfer.Examine(ctx, s)
	return append(findings, accounts...), err
}

// open opens the store, to be served or for a command that must change nothing.
func (f *storeFlags) open(ctx context.Context, readOnly bool) (openStore, error) {
	url, err := f.location()
	if err != nil {
		return nil, err
	}
	if url != "" {
		s, err := postgres.Open(ctx, url, postgres.Options{BusyTimeout: f.busyTimeout, ReadOnly: readOnly, Application: application(readOnly)})
		return onServer{s}, err
	}
	folder, err := f.folder()
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, folder, f.options(readOnly))
}

// application is what a sidecar calls itself on a server, and "" else.
func application(readOnly bool) string {
	if readOnly {
		return "taskforce status"
	}
	return ""
}

// location is the URL that the flags and the environment choose, "" for a
// folder. A flag goes before the environment. As the URL may hold a password, no
// error repeats it.
func (f *storeFlags) location() (string, error) {
	url := f.url
	switch {
	case url != "" && f.root != "":
		return "", errors.New("--store and --root name two stores: say one")
	case url == "" && f.root == "":
		url = os.Getenv("TASKFORCE_STORE")
	}
	if url != "" && !postgres.Speaks(url) {
		return "", errors.New("the store's URL must begin with postgres://")
	}
	return url, nil
}

func (f *storeFlags) options(readOnly bool) sqlite.Options {
	return sqlite.Options{BusyTimeout: f.busyTimeout, AllowNetworkFS: f.allowNetworkFS, ReadOnly: readOnly}
}

// openToRead opens the file for a command that must change nothing.
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
