// Command taskforce is the durable authority that a host asks before it starts
// an agent. A host spawns `taskforce serve` and speaks JSON-RPC 2.0 with it over
// standard input and output; the other subcommands are for people and scripts.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version = "0.1.0-dev"

func main() {
	if err := newRoot().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "taskforce:", explain(err))
		os.Exit(1)
	}
}

// explain is the one line that a person reads when a command fails. The cause
// of a known error is for logs and bug reports, so it stays out.
func explain(err error) string {
	var known *schema.Error
	if errors.As(err, &known) {
		return fmt.Sprintf("%s (%s)", known.Message, known.Code)
	}
	return err.Error()
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "taskforce",
		Short: "Admission, budgets and locks for programs that run many agents",
		Long: "taskforce says, before an agent is started: yes, there is room; or no, and why.\n" +
			"A host spawns `taskforce serve` and speaks JSON-RPC 2.0 with it over a pipe.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(newServe(), newSchema(), newStatus(), newDoctor(), newVersion())
	return root
}
