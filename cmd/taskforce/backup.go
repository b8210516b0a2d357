package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/spf13/cobra"
)

func newBackup() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store into a new file",
		Long: "backup copies the store in one consistent state, beside live sidecars, verifies the copy\n" +
			"and only then gives it its name. It never overwrites a file, and refuses a ledger that\n" +
			"has faults. A backup is not served: restore makes a store of it.",
		Example: "  taskforce backup taskforce-$(date +%F).db",
		Args:    oneFile,
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := f.openToRead(cmd.Context())
		if err != nil {
			return err
		}
		defer s.Close()
		copied, err := interruptible(cmd.Context(), func(ctx context.Context, progress sqlite.Progress) (*sqlite.Copied, error) {
			return s.Backup(ctx, args[0], progress)
		})
		return show(cmd.OutOrStdout(), asJSON, copied, err, printCopied)
	}
	return cmd
}

// oneFile is for commands whose one argument is a file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return misused(cmd, fmt.Errorf("%s takes one file", cmd.Name()))
}

// interruptible runs a copy that an interrupt ends, and draws its progress.
func interruptible(ctx context.Context, run func(context.Context, sqlite.Progress) (*sqlite.Copied, error)) (*sqlite.Copied, error) {
	ctx, stop := signal.NotifyContext(ctx, append(stopSignals, os.Interrupt)...)
	defer stop()
	bar := &progressBar{out: os.Stderr, shown: onTerminal(os.Stderr), blocks: blocksFor(os.Stderr)}
	copied, err := run(ctx, bar.draw)
	bar.clear()
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted: nothing was made")
	}
	return copied, err
}

func printCopied(w io.Writer, c *sqlite.Copied) error {
	_, err := fmt.Fprintf(w, "%s: %d KiB, %d tasks, %d reservations, %d audit entries; sound\n",
		readable(c.File), c.Bytes>>10, c.Rows.Tasks, c.Rows.Reservations, c.Rows.Audit)
	return err
}
