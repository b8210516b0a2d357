package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a mistake on the command line.
type usageError struct{ error }

// misused adds to a mistake where the usage is explained.
func misused(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

// noArguments is for commands that take flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return misused(cmd, fmt.Errorf("%s takes no argument, not %q", cmd.Name(), args[0]))
}

// knownCommand refuses what cobra found no subcommand for.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, similar[0])
	}
	return misused(cmd, err)
}
