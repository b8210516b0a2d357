package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/spf13/cobra"
)

// diagnosis is what `doctor --json` prints.
type diagnosis struct {
	Healthy  bool            `json:"healthy"`
	Findings []store.Finding `json:"findings"`
}

func newDoctor() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the store: file, settings and accounts",
		Long: "doctor reads the whole database and says for each check: ok, warn or FAIL. It changes\n" +
			"nothing, and works beside live sidecars. Its exit status is 0 if no check failed, else 1.",
		Args: noArguments,
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := f.open(cmd.Context(), true)
		if err != nil {
			return err
		}
		defer s.Close()
		findings, err := s.Examine(cmd.Context())
		faults := faultsIn(findings)
		d := &diagnosis{Healthy: len(faults) == 0, Findings: findings}
		if err := show(cmd.OutOrStdout(), asJSON, d, err, printDiagnosis); err != nil {
			return err
		}
		if len(faults) > 0 {
			return fmt.Errorf("the store has faults: %s", strings.Join(faults, ", "))
		}
		return nil
	}
	return cmd
}

// faultsIn returns the names of the checks that failed.
func faultsIn(findings []store.Finding) []string {
	var names []string
	for _, f := range findings {
		if f.Level == store.Fault {
			names = append(names, f.Name)
		}
	}
	return names
}

func printDiagnosis(w io.Writer, d *diagnosis) error {
	out := newTable(w)
	for _, f := range d.Findings {
		out.row("%s\t%s\t%s", f.Level, f.Name, readable(f.Explanation))
	}
	return out.Flush()
}
