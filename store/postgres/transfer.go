package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/jackc/pgx/v5"
)

var (
	_ store.Exporter = (*Store)(nil)
	_ store.Importer = (*Store)(nil)
)

// Export implements [store.Exporter].
func (s *Store) Export(ctx context.Context, put store.Put) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	err = s.whole(ctx, func(t *tx) error {
		t.queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
		if err := t.flush(); err != nil {
			return err
		}
		for _, table := range store.Ledger {
			if err := t.export(table, put); err != nil {
				return err
			}
		}
		return nil
	})
	return classify(err, "the ledger cannot be read")
}

// whole runs fn on a connection for as long as it takes.
func (s *Store) whole(ctx context.Context, fn func(*tx) error) error {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return lostUnlessState(err)
	}
	defer pooled.Release()
	t := s.newTx(ctx, pooled.Conn())
	defer t.end()
	return fn(t)
}

// export reads a table row by row, so that its size does not matter.
func (t *tx) export(table *store.Table, put store.Put) error {
	query := fmt.Sprintf("SELECT %s FROM @%s ORDER BY %s", strings.Join(table.Columns(), ", "), table.Name, strings.Join(table.Order, ", "))
	rows, err := t.conn.Query(t.ctx, t.store.query(query))
	if err != nil {
		return err
	}
	defer rows.Close()
	numbers := make([]int64, len(table.Numbers))
	texts := make([]*string, len(table.Texts))
	var fields []any
	for i := range numbers {
		fields = append(fields, &numbers[i])
	}
	for i := range texts {
		fields = append(fields, &texts[i])
	}
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return rowError{err}
		}
		unescapeAll(fields)
		if err := put(table, rowOf(numbers, texts)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func rowOf(numbers []int64, texts []*string) []any {
	var row []any
	for _, n := range numbers {
		row = append(row, n)
	}
	for _, text := range texts {
		if text == nil {
			row = append(row, nil)
		} else {
			row = append(row, *text)
		}
	}
	return row
}

// Import implements [store.Importer].
func (s *Store) Import(ctx context.Context, fill func(store.Put) error) error {
	if s.options.ReadOnly {
		return schema.Errorf(schema.ErrStoreReadonly, "the store was opened for reading only")
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	err = s.whole(ctx, func(t *tx) error {
		if err := t.beginWrite(nil, true); err != nil {
			return err
		}
		if err := t.mustBeEmpty(); err != nil {
			return err
		}
		if err := fill(t.put); err != nil {
			return err
		}
		t.number()
		// One member stands for the whole ledger.
		imported := &write{}
		if err := t.commit([]*write{imported}); err != nil {
			return err
		}
		return imported.err
	})
	return classify(err, "the ledger cannot be written")
}

func (t *tx) mustBeEmpty() error {
	for _, table := range store.Ledger {
		var some bool
		if _, err := t.one("SELECT EXISTS (SELECT 1 FROM @"+table.Name+")", nil, &some); err != nil {
			return err
		}
		if some {
			return schema.Errorf(schema.ErrStoreConfig, "%s is not empty, and nothing is ever overwritten", t.store.identity.Location)
		}
	}
	return nil
}

// together is how many rows are sent at once.
const together = 500

// put queues a row.
func (t *tx) put(table *store.Table, row []any) error {
	values := make([]string, len(row))
	for i := range values {
		values[i] = fmt.Sprintf("$%d", i+1)
	}
	t.queue(fmt.Sprintf("INSERT INTO @%s (%s) VALUES (%s)", table.Name, strings.Join(table.Columns(), ", "), strings.Join(values, ", ")), row...)
	if t.pending.Len() < together {
		return nil
	}
	return t.flush()
}

// number lets the numbers of later rows follow those of the imported ones.
func (t *tx) number() {
	for _, numbered := range [][2]string{{"task", "id"}, {"task_event", "id"}, {"governor_reservation", "seq"}, {"governor_audit", "id"}} {
		table, column := numbered[0], numbered[1]
		t.queue(fmt.Sprintf("SELECT setval(pg_get_serial_sequence($1, '%s'), max(%s)) FROM @%s HAVING max(%s) IS NOT NULL", column, column, table, column),
			t.store.address.quoted+"."+pgx.Identifier{table}.Sanitize())
	}
}

// Live counts the connections of sidecars to the store. A sidecar
// without one, or one that waits behind a pooler, is not seen.
func (s *Store) Live(ctx context.Context) (n int64, err error) {
	err = s.Read(ctx, func(inside store.Tx) error {
		const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1"
		_, err := inside.(*tx).one(query, []any{s.address.application()}, &n)
		return err
	})
	return n, err
}
