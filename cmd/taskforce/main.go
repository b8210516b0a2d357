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
	err := newRoot().Execute()
	if err != nil {
		complain(os.Stderr, "taskforce: "+explain(err))
	}
	os.Exit(exitStatus(err))
}

// exitStatus is 2 for a mistake on the command line and for a question that has
// no answer, 1 for everything else that failed.
func exitStatus(err error) int {
	var misuse usageError
	var unanswered unexamined
	switch {
	case err == nil:
		return 0
	case errors.As(err, &misuse), errors.As(err, &unanswered):
		return 2
	}
	return 1
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
			"A host spawns `taskforce serve` and speaks JSON-RPC 2.0 with it over a pipe.\n" +
			"The other commands are for people and scripts; none of them changes the store.\n" +
			"The exit status is 0, 2 for a mistake on the command line, or 1 for any other failure.",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,

		SuggestionsMinimumDistance: 2, // letters that a misspelt command may differ in
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(misused)
	root.AddCommand(newServe(), newStatus(), newDoctor(), newVerify(), newBackup(), newRestore(), newCopy(), newSchema(), newVersion())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = knownCommand, root.RunE // else it explains itself for any shell
	}
	return root
}
