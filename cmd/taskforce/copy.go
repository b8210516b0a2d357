package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/transfer"
	"github.com/spf13/cobra"
)

// copyFlags say what is copied where.
type copyFlags struct {
	from, to    string
	busyTimeout time.Duration
	live        bool
	asJSON      bool
}

// movedLedger is what `copy --json` prints.
type movedLedger struct {
	From    string     `json:"from"`
	To      string     `json:"to"`
	StoreID string     `json:"store_id"`
	Rows    store.Rows `json:"rows"`
	Digest  string     `json:"digest"`
}

// place is a store that can be copied from and to.
type place interface {
	openStore
	store.Exporter
	store.Importer
}

func newCopy() *cobra.Command {
	f := &copyFlags{busyTimeout: sqlite.DefaultBusyTimeout}
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE",
		Short: "Copy a whole ledger into an empty store of any engine",
		Long: "copy moves a ledger between a file and a PostgreSQL database, or between two of a kind,\n" +
			"with its whole history. A store is a root folder or a postgres:// URL. The source is\n" +
			"verified first, and the copy afterwards, whose every row is compared with the source.\n" +
			"A target that has rows is refused, and so is a source that sidecars have open: what\n" +
			"they admit after the copy would be in one ledger only. End the hosts first, and start\n" +
			"them on the copy. The copy has an identity of its own.",
		Example: "  taskforce copy --from ~/.dsh/taskforce --to 'postgres://taskforce@db.example/agents'",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().Var(textFlag(&f.from, "store"), "from", "root folder or postgres:// URL of the ledger")
	cmd.Flags().Var(textFlag(&f.to, "store"), "to", "root folder or postgres:// URL of the empty store; it is made if it is absent")
	cmd.Flags().Var(durationFlag(&f.busyTimeout, time.Millisecond, time.Hour), "busy-timeout", "longest wait for another process's transaction")
	cmd.Flags().BoolVar(&f.live, "live", false, "copy although sidecars have the source open")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (f *copyFlags) run(cmd *cobra.Command) error {
	if f.from == "" || f.to == "" {
		return misused(cmd, errors.New("say --from and --to"))
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), append(stopSignals, os.Interrupt)...)
	defer stop()
	moved, err := f.move(ctx)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted: nothing was copied")
	}
	return show(cmd.OutOrStdout(), f.asJSON, moved, err, printMoved)
}

func (f *copyFlags) move(ctx context.Context) (*movedLedger, error) {
	if err := f.mustBeIdle(ctx); err != nil {
		return nil, err
	}
	from, err := f.open(ctx, f.from, true)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	source, err := from.Verify(ctx)
	if err != nil {
		return nil, err
	}
	if !source.Sound {
		return nil, schema.Errorf(schema.ErrStoreCorrupt, "the ledger in %s has faults, which taskforce verify explains", from.Identity().Location)
	}
	to, err := f.open(ctx, f.to, false)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	r := source.Rows
	bar := &progressBar{out: os.Stderr, shown: onTerminal(os.Stderr), blocks: blocksFor(os.Stderr)}
	copied, err := transfer.Copy(ctx, from, to, r.Tasks+r.Events+r.Reservations+r.Holds+r.Charges+r.Audit, bar.draw)
	bar.clear()
	if err != nil {
		return nil, err
	}
	result, err := to.Verify(ctx)
	if err != nil {
		return nil, err
	}
	if !result.Sound {
		return nil, schema.Errorf(schema.ErrStoreCorrupt, "the copy in %s has faults, which taskforce verify explains", to.Identity().Location)
	}
	return &movedLedger{from.Identity().Location, to.Identity().Location, to.Identity().ID, result.Rows, copied.Digest}, nil
}

// open opens one of the two stores.
func (f *copyFlags) open(ctx context.Context, where string, readOnly bool) (place, error) {
	if postgres.Speaks(where) {
		s, err := postgres.Open(ctx, where, postgres.Options{BusyTimeout: f.busyTimeout, ReadOnly: readOnly, Application: "taskforce copy"})
		return onServer{s}, err
	}
	return sqlite.Open(ctx, where, sqlite.Options{BusyTimeout: f.busyTimeout, ReadOnly: readOnly})
}

// mustBeIdle refuses a source that sidecars have open.
func (f *copyFlags) mustBeIdle(ctx context.Context) error {
	if f.live {
		return nil
	}
	idle := true
	if postgres.Speaks(f.from) {
		s, err := f.open(ctx, f.from, true)
		if err != nil {
			return err
		}
		defer s.Close()
		live, err := s.(onServer).Live(ctx)
		if err != nil {
			return err
		}
		idle = live == 0
	} else if _, err := os.Stat(f.from); err == nil { // else opening it says what is wrong
		var err error
		if idle, err = sqlite.Idle(ctx, f.from); err != nil {
			return err
		}
	}
	if !idle {
		return schema.Errorf(schema.ErrStoreBusy, "sidecars have the source open: end their hosts first, or say --live and settle afterwards what they admit meanwhile")
	}
	return nil
}

func printMoved(w io.Writer, m *movedLedger) error {
	_, err := fmt.Fprintf(w, "%s: %d tasks, %d events, %d reservations, %d holds, %d retry charges, %d audit entries; sound, every row compared\n",
		m.To, m.Rows.Tasks, m.Rows.Events, m.Rows.Reservations, m.Rows.Holds, m.Rows.Charges, m.Rows.Audit)
	return err
}
