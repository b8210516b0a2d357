package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/spf13/cobra"
)

func newStatus() *cobra.Command {
	var f storeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show the runs of a store, or what one run occupies",
		Long: "status shows every run with its counts, or of one run the limits, the active and unknown\n" +
			"work and what it holds. It changes nothing, and works beside live sidecars.",
		Example: "  taskforce status\n  taskforce status run-a --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misused(cmd, fmt.Errorf("status takes one run, not %d", len(args)))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: the result of governor.summary, or of governor.runs with every run")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := f.open(cmd.Context(), true)
		if err != nil {
			return err
		}
		defer s.Close()
		out := cmd.OutOrStdout()
		if len(args) == 0 {
			runs, err := readRuns(cmd.Context(), s)
			return show(out, asJSON, runs, err, printRuns)
		}
		summary, err := readSummary(cmd.Context(), s, args[0])
		return show(out, asJSON, summary, err, func(w io.Writer, summary *schema.Summary) error {
			return printSummary(w, summary, time.Now(), blocksFor(os.Stdout))
		})
	}
	return cmd
}

// show prints what was read for a script or, with write, for a person.
func show[T any](w io.Writer, asJSON bool, value *T, err error, write func(io.Writer, *T) error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(w, value)
	}
	return write(w, value)
}

// readRuns reads every run, page by page, in one transaction.
func readRuns(ctx context.Context, s store.Store) (*schema.RunsPage, error) {
	all := &schema.RunsPage{}
	err := s.Read(ctx, func(tx store.Tx) error {
		for p := (schema.RunsParams{Limit: 1000}); ; {
			page, err := governor.Runs(tx, &p)
			if err != nil {
				return err
			}
			all.Items = append(all.Items, page.Items...)
			if page.Next == nil {
				return nil
			}
			p.After = *page.Next
		}
	})
	return all, err
}

// readSummary reads one run. Over the wire an unknown run is one that has not
// begun; a person who names one has more likely misspelt it.
func readSummary(ctx context.Context, s store.Store, run string) (summary *schema.Summary, err error) {
	err = s.Read(ctx, func(tx store.Tx) error {
		version, err := tx.Version(run)
		if err != nil {
			return err
		}
		if version == (store.Version{}) {
			return schema.Errorf(schema.ErrNotFound, "the store knows no run %s", readable(run))
		}
		summary, err = governor.Summary(tx, &schema.RunParams{RunID: run})
		return err
	})
	return summary, err
}

func printRuns(w io.Writer, page *schema.RunsPage) error {
	if len(page.Items) == 0 {
		_, err := fmt.Fprintln(w, "no runs")
		return err
	}
	out := newTable(w)
	out.row("RUN\tACTIVE\tWRITERS\tNEW\tUNKNOWN")
	for _, run := range page.Items {
		used, limits := run.Used, run.Limits
		out.row("%s\t%d/%d\t%d/%d\t%d/%d\t%d", readable(run.RunID), used.Active, limits.MaxActive,
			used.Writers, limits.MaxWriters, used.Created, limits.MaxCreated, used.Unknown)
	}
	return out.Flush()
}

func printSummary(w io.Writer, s *schema.Summary, now time.Time, b blocks) error {
	out := newTable(w)
	out.row("run\t%s", readable(s.RunID))
	for _, line := range []struct {
		name      string
		used, max int64
	}{
		{"active", s.Used.Active, s.Limits.MaxActive},
		{"writers", s.Used.Writers, s.Limits.MaxWriters},
		{"new", s.Used.Created, s.Limits.MaxCreated},
	} {
		out.row("%s\t%s  %d/%d", line.name, b.bar(line.used, line.max), line.used, line.max)
	}
	out.row("unknown\t%d", s.Used.Unknown)
	if err := out.Flush(); err != nil {
		return err
	}
	if err := printWork(w, s, now); err != nil {
		return err
	}
	return printHolds(w, s)
}

// printWork lists active and unknown work, each with the retries of its task.
func printWork(w io.Writer, s *schema.Summary, now time.Time) error {
	if len(s.Executions) == 0 {
		_, err := fmt.Fprintln(w, "\nno active work")
		return err
	}
	out := newTable(w)
	out.row("\nRESERVATION\tTASK\tSTATE\tAGE\tMODE\tKIND\tRETRIES\tOWNER\tSESSION")
	for i, e := range s.Executions {
		out.row("%s\t%d\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s", readable(e.ReservationID), e.TaskID, e.State, age(e.Since, now),
			e.Mode, e.Kind, s.Retries[i].Charged, s.Limits.MaxRetries, optional(e.OwnerSession), optional(e.SessionID))
	}
	return out.Flush()
}

func printHolds(w io.Writer, s *schema.Summary) error {
	if len(s.Holds) == 0 {
		return nil
	}
	out := newTable(w)
	out.row("\nRESOURCE\tMODE\tRESERVATION")
	for _, h := range s.Holds {
		out.row("%s\t%s\t%s", readable(h.ResourceKey), h.Mode, readable(h.ReservationID))
	}
	return out.Flush()
}
