package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/spf13/cobra"
)

// serveFlags say how a connection is served.
type serveFlags struct {
	storeFlags
	maxFrame, maxInFlight int
	run, role, session    string
	verbose               bool
}

func newServe() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve one host over standard input and output",
		Long: "serve speaks JSON-RPC 2.0 with the host that spawned it: one JSON text a line, or\n" +
			"Content-Length framing, whichever the host begins with. It ends with its input.\n" +
			"--run, --role and --session fix who this pipe speaks for, so that it can be handed to\n" +
			"a process that the host trusts less than itself.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	f.register(cmd)
	cmd.Flags().IntVar(&f.maxFrame, "max-frame", rpc.DefaultMaxFrame, "largest request in bytes")
	cmd.Flags().IntVar(&f.maxInFlight, "max-in-flight", rpc.DefaultMaxInFlight, "most requests in flight; past that nothing is read")
	cmd.Flags().StringVar(&f.run, "run", "", "the only run that this pipe may name")
	cmd.Flags().StringVar(&f.role, "role", "", "the only role that this pipe may claim: lead or worker")
	cmd.Flags().StringVar(&f.session, "session", "", "the only session that this pipe may claim")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "log more than warnings to standard error")
	return cmd
}

func (f *serveFlags) serve(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	folder, err := f.folder()
	if err != nil {
		return err
	}
	keepFilesPrivate()
	ctx, stop := untilTold(cmd.Context())
	defer stop()
	store, err := sqlite.Open(ctx, folder, f.options(false))
	if err != nil {
		return err
	}
	log := newLog(os.Stderr, f.verbose)
	err = rpc.Serve(ctx, store, os.Stdin, os.Stdout, rpc.Options{
		Version: version, MaxFrame: f.maxFrame, MaxInFlight: f.maxInFlight, Log: log,
		Pinned: schema.PinnedAuthority{RunID: f.run, Role: schema.Role(f.role), SessionID: f.session},
	})
	if closing := store.Close(); err == nil {
		err = closing
	}
	return err
}

func (f *serveFlags) check() error {
	switch {
	case f.role != "" && f.role != string(schema.Lead) && f.role != string(schema.Worker):
		return fmt.Errorf("--role must be lead or worker, not %q", f.role)
	case f.maxFrame < 1024:
		return fmt.Errorf("--max-frame must be at least 1024 bytes, not %d", f.maxFrame)
	case f.maxInFlight < 1 || f.maxInFlight > 65536:
		return fmt.Errorf("--max-in-flight must be from 1 to 65536, not %d", f.maxInFlight)
	}
	return nil
}

func newLog(to *os.File, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(newDropWriter(to), &slog.HandlerOptions{Level: level}))
}
