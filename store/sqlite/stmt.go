package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// statement is a prepared statement of the driver. An admission runs a dozen
// small ones, for which the pool and the locks of database/sql, which one
// connection in one goroutine needs none of, cost about as much as the driver.
type statement struct {
	stmt driverStmt
	args []driver.NamedValue // used again by each run
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// prepare makes a statement on the driver's connection below c.
func prepare(ctx context.Context, c *sql.Conn, query string) (*statement, error) {
	s := &statement{}
	err := c.Raw(func(raw any) error {
		prepared, err := raw.(driver.ConnPrepareContext).PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		s.stmt = prepared.(driverStmt) // as those of modernc.org/sqlite are
		return nil
	})
	return s, err
}

func (s *statement) exec(ctx context.Context, args []any) (driver.Result, error) {
	if err := s.take(args); err != nil {
		return nil, err
	}
	return s.stmt.ExecContext(ctx, s.args)
}

func (s *statement) query(ctx context.Context, args []any) (*rows, error) {
	if err := s.take(args); err != nil {
		return nil, err
	}
	r, err := s.stmt.QueryContext(ctx, s.args)
	if err != nil {
		return nil, err
	}
	return &rows{rows: r, open: true, values: make([]driver.Value, len(r.Columns()))}, nil
}

// take converts the arguments to the few types that a driver takes.
func (s *statement) take(args []any) error {
	s.args = s.args[:0]
	for i, arg := range args {
		switch arg.(type) {
		case string, int64, nil:
		default:
			value, err := driver.DefaultParameterConverter.ConvertValue(arg)
			if err != nil {
				return err
			}
			arg = value
		}
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return nil
}

func (s *statement) close() { _ = s.stmt.Close() }

// rows are the rows that a statement returns, like [sql.Rows].
type rows struct {
	rows   driver.Rows
	open   bool
	values []driver.Value
	err    error
}

// Next reads the next row; false after the last one or an error.
func (r *rows) Next() bool {
	if r.err == nil {
		r.err = r.rows.Next(r.values)
	}
	return r.err == nil
}

// Err is why Next returned false, nil after the last row.
func (r *rows) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// close ends the query, so that its statement can be used again. What can fail
// in it has failed in Next before, because nothing here commits on its own.
func (r *rows) close() {
	if r.open {
		r.open = false
		_ = r.rows.Close()
	}
}

// Scan copies the columns of the row.
func (r *rows) Scan(into ...any) error {
	if len(into) != len(r.values) {
		return fmt.Errorf("%d columns are scanned into %d places", len(r.values), len(into))
	}
	for i, value := range r.values {
		if err := assign(into[i], value); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

// assign copies a value that has the type of its place at once, and leaves any
// other to the conversions of database/sql.
func assign(into any, value driver.Value) error {
	switch into := into.(type) {
	case *string:
		if text, ok := value.(string); ok {
			*into = text
			return nil
		}
	case *int64:
		if number, ok := value.(int64); ok {
			*into = number
			return nil
		}
	case **string:
		switch value := value.(type) {
		case nil:
			*into = nil
			return nil
		case string:
			*into = &value
			return nil
		}
	}
	return convert(reflect.ValueOf(into).Elem(), value)
}

func convert(into reflect.Value, value driver.Value) error {
	switch into.Kind() {
	case reflect.String:
		var text sql.NullString
		if err := text.Scan(value); err != nil || !text.Valid {
			return errors.Join(errNoValue, err)
		}
		into.SetString(text.String)
	case reflect.Int64, reflect.Int:
		var number sql.NullInt64
		if err := number.Scan(value); err != nil || !number.Valid {
			return errors.Join(errNoValue, err)
		}
		into.SetInt(number.Int64)
	case reflect.Bool:
		var truth sql.NullBool
		if err := truth.Scan(value); err != nil || !truth.Valid {
			return errors.Join(errNoValue, err)
		}
		into.SetBool(truth.Bool)
	case reflect.Pointer:
		if value == nil {
			into.SetZero()
			return nil
		}
		into.Set(reflect.New(into.Type().Elem()))
		return convert(into.Elem(), value)
	default:
		return fmt.Errorf("no column is kept in a %s", into.Type())
	}
	return nil
}

// errNoValue reports a column whose value is not of the type that it must have.
var errNoValue = errors.New("the value has not the type of its column")
