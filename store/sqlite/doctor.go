package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Level says how bad a finding is.
type Level string

// The levels of a [Finding].
const (
	Fine    Level = "ok"
	Warning Level = "warn"
	Fault   Level = "FAIL"
)

// Finding is the answer to one question about a store.
type Finding struct {
	Level Level `json:"level"`
	// Name is a stable token for the question.
	Name string `json:"name"`
	// Explanation is the answer for people.
	Explanation string `json:"explanation"`
}

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
		findings = append(e.answer(fileChecks), e.answer(ledgerChecks())...)
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
		findings = append(findings, Finding{level, c.name, explanation})
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
	rows, err := e.conn.c.QueryContext(e.ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// some is a list cut short for one line.
func some(list []string) string {
	const shown = 3
	var quoted []string
	for _, text := range list[:min(len(list), shown)] {
		quoted = append(quoted, strconv.Quote(text))
	}
	text := strings.Join(quoted, ", ")
	if len(list) > shown {
		text += fmt.Sprintf(" and %d more", len(list)-shown)
	}
	return text
}
