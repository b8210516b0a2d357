package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// The findings of all engines are alike.
type (
	// Level says how bad a finding is.
	Level = store.Level
	// Finding is the answer to one question about a store.
	Finding = store.Finding
)

// The levels of a [Finding].
const (
	Fine    = store.Fine
	Warning = store.Warning
	Fault   = store.Fault
)

// check is one question. An error of ask means that the file could not answer,
// which is a fault of its own.
type check struct {
	name string
	ask  func(*examination) (Level, string, error)
}

// examination is what a check works on: the store, and a connection inside a
// read transaction. A connection rather than a [store.Tx], because the
// questions go on after one has failed.
type examination struct {
	ctx   context.Context
	store *Store
	conn  *conn
}

// Examine asks every question about the file and about the ledger in it, all on
// one consistent state. It changes nothing, and a store that was opened
// ReadOnly is enough for it.
func (s *Store) Examine(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	err := s.Read(ctx, func(t store.Tx) error {
		e := &examination{context.WithoutCancel(ctx), s, t.(*tx).conn}
		findings = e.answer(fileChecks)
		v, err := verify(e)
		if err != nil {
			return err
		}
		findings = append(findings, v.findings()...)
		return nil
	})
	return findings, err
}

func (e *examination) answer(checks []check) []Finding {
	findings := make([]Finding, 0, len(checks))
	for _, c := range checks {
		level, explanation, err := c.ask(e)
		if err != nil {
			level, explanation = Fault, "the question cannot be answered: "+messageOf(err)
		}
		findings = append(findings, Finding{Level: level, Name: c.name, Explanation: explanation})
	}
	return findings
}

// messageOf is what a person may read of an error.
func messageOf(err error) string {
	var known *schema.Error
	if errors.As(classify(err, "the database cannot be read"), &known) {
		return known.Message
	}
	return err.Error()
}

// scan runs a query that returns one row.
func (e *examination) scan(query string, into ...any) error {
	_, err := e.conn.scan(e.ctx, query, nil, into...)
	return err
}

// list runs a query whose rows have one column of text.
func (e *examination) list(query string) ([]string, error) {
	var list []string
	err := e.each(query, func(rows *sql.Rows) error {
		var text string
		defer func() { list = append(list, text) }()
		return rows.Scan(&text)
	})
	return list, err
}

// each runs a query and hands over its rows, one by one.
func (e *examination) each(query string, row func(*sql.Rows) error) error {
	rows, err := e.conn.c.QueryContext(e.ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// some is a list, of which there may be more, cut short for one line.
func some(list []string, total int) string {
	const shown = 3
	var quoted []string
	for _, text := range list[:min(len(list), shown)] {
		quoted = append(quoted, strconv.Quote(text))
	}
	text := strings.Join(quoted, ", ")
	if total > shown {
		text += fmt.Sprintf(" and %d more", total-shown)
	}
	return text
}
