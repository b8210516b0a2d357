package main

import (
	"context"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/spf13/cobra"
)

func newRestore() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a store of a backup, in a new place",
		Long: "restore verifies a backup and makes a store of it in a root folder that has none. The\n" +
			"store has an identity of its own, so that no host takes it for the one that the backup\n" +
			"was taken from. What was active then is active in it, and what was admitted since is not:\n" +
			"settle the one and find out about the other before work goes on.",
		Example: "  taskforce restore taskforce-2026-01-31.db --root restored",
		Args:    oneFile,
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := f.folder()
		if err != nil {
			return err
		}
		copied, err := interruptible(cmd.Context(), func(ctx context.Context, progress sqlite.Progress) (*sqlite.Copied, error) {
			return sqlite.Restore(ctx, args[0], folder, f.options(false), progress)
		})
		return show(cmd.OutOrStdout(), asJSON, copied, err, printCopied)
	}
	return cmd
}
