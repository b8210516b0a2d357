package main

import (
	"os"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/spf13/cobra"
)

// serveFlags say how a connection is served.
type serveFlags struct {
	storeFlags
	maxFrame, maxInFlight int
	pinned                schema.PinnedAuthority
	verbose               bool
}

func newServe() *cobra.Command {
	f := &serveFlags{maxFrame: rpc.DefaultMaxFrame, maxInFlight: rpc.DefaultMaxInFlight}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve one host over standard input and output",
		Long: "serve speaks JSON-RPC 2.0 with the host that spawned it: one JSON text a line, or\n" +
			"Content-Length framing, whichever the host begins with. It ends with its input.\n" +
			"--run, --role and --session fix who this pipe speaks for, so that it can be handed to\n" +
			"a process that the host trusts less than itself.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	f.register(cmd)
	cmd.Flags().Var(intFlag(&f.maxFrame, "bytes", 1<<10, 1<<30), "max-frame", "largest request")
	cmd.Flags().Var(intFlag(&f.maxInFlight, "requests", 1, 1<<16), "max-in-flight", "most requests in flight, of 64 MiB together; past that nothing is read")
	cmd.Flags().Var(textFlag(&f.pinned.RunID, "key"), "run", "the only run that this pipe may name")
	cmd.Flags().Var(roleFlag(&f.pinned.Role), "role", "the only role that this pipe may claim: lead or worker")
	cmd.Flags().Var(textFlag(&f.pinned.SessionID, "key"), "session", "the only session that this pipe may claim")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "log more than warnings to standard error")
	return cmd
}

func (f *serveFlags) serve(cmd *cobra.Command) error {
	keepFilesPrivate()
	surviveBrokenPipes()
	defer raiseHeap()()
	log, flush := newLog(os.Stderr, f.verbose)
	defer flush()
	in := &hostInput{Reader: os.Stdin}
	ctx, stop := untilTold(cmd.Context(), in)
	defer stop()
	store, err := f.open(ctx, false)
	if err != nil {
		return err
	}
	err = rpc.Serve(ctx, store, in, os.Stdout, rpc.Options{
		Version: version, MaxFrame: f.maxFrame, MaxInFlight: f.maxInFlight, Pinned: f.pinned, Log: log,
	})
	if closing := store.Close(); err == nil {
		err = closing
	}
	return err
}
