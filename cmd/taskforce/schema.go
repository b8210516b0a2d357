package main

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/spf13/cobra"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the OpenRPC document of the service",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(schema.OpenRPC)
			return err
		},
	}
}
