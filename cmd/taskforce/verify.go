package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/spf13/cobra"
)

func newVerify() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute the accounts of the store from its rows",
		Long: "verify recomputes whatever derives from the retained rows: counts, generations, charges,\n" +
			"holds, and the audit replayed from its first entry. It explains each row that says\n" +
			"otherwise. It changes nothing, and works beside live sidecars. Its exit status is 0 if the\n" +
			"ledger is sound, 1 if it has faults, 2 if it cannot be examined.",
		Args: noArguments,
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := f.open(cmd.Context(), true)
		if err != nil {
			return unexamined{err}
		}
		defer s.Close()
		v, err := s.Verify(cmd.Context())
		if err := show(cmd.OutOrStdout(), asJSON, v, err, printVerification); err != nil {
			return unexamined{err}
		}
		if !v.Sound {
			return errUnsound
		}
		return nil
	}
	return cmd
}

// unexamined is an error of a question that could not be answered, as opposed to a bad answer.
type unexamined struct{ error }

func (u unexamined) Unwrap() error { return u.error }

var errUnsound = errors.New("the ledger has faults")

func printVerification(w io.Writer, v *store.Verification) error {
	out := newTable(w)
	for _, b := range v.Breaches {
		out.row("%s\t%s\t%s\t%s\t%s", b.Level, b.Check, b.Table, readable(b.Row), b.Explanation)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	verdict := "sound"
	if !v.Sound {
		verdict = "not sound"
	}
	rows := v.Rows
	_, err := fmt.Fprintf(w, "%s: %d tasks, %d events, %d reservations, %d holds, %d retry charges, %d audit entries\n",
		verdict, rows.Tasks, rows.Events, rows.Reservations, rows.Holds, rows.Charges, rows.Audit)
	return err
}
