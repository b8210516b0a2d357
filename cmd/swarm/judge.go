package main

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/google/uuid"
)

// mostViolations is how many of one judge's violations are told.
const mostViolations = 20

// judge asks whether the promise was kept, and returns what it finds: what the
// hosts saw themselves; what they were told and is not in the store; what
// `taskforce verify` finds, which replays the audit; and what stock SQLite
// finds by the queries of invariants.sql, which know nothing of this project.
func (s *swarm) judge(ctx context.Context) (violations []string, err error) {
	s.board.mu.Lock()
	violations = some(s.board.violations)
	s.board.mu.Unlock()
	if err := s.fetch(ctx); err != nil {
		return violations, err
	}
	for _, ask := range []func(context.Context) ([]string, error){s.judgeAcknowledged, s.judgeVerify, s.judgeSQL} {
		found, err := ask(ctx)
		if err != nil {
			return violations, err
		}
		violations = append(violations, some(found)...)
	}
	return violations, nil
}

// some is the list, cut to what a person reads.
func some(list []string) []string {
	if len(list) <= mostViolations {
		return list
	}
	return append(slices.Clone(list[:mostViolations]), fmt.Sprintf("and %d more", len(list)-mostViolations))
}

// judgeAcknowledged looks for what some host was told, as it was told.
func (s *swarm) judgeAcknowledged(ctx context.Context) (violations []string, err error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT reservation_id, run_id, operation_key, state FROM governor_reservation")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	left := len(s.board.acknowledged)
	for rows.Next() {
		var id, run, key, state string
		if err := rows.Scan(&id, &run, &key, &state); err != nil {
			return nil, err
		}
		parsed, err := uuid.Parse(id)
		if err != nil {
			return nil, err
		}
		told, ok := s.board.acknowledged[parsed]
		if !ok {
			continue // nobody was told: its sidecar died first
		}
		left--
		if told.name != name(run, key) {
			violations = append(violations, fmt.Sprintf("reservation %s was acknowledged for another key than %q of %s", id, key, run))
		}
		if told.settled && state != "settled" {
			violations = append(violations, fmt.Sprintf("the settlement of %s was acknowledged, and it is %s", id, state))
		}
	}
	if left > 0 {
		violations = append(violations, fmt.Sprintf("%d acknowledged admissions are lost", left))
	}
	return violations, rows.Err()
}

// place are the flags of the store that the hosts share.
func (o options) place() []string {
	if o.store != "" {
		return []string{"--store", o.store}
	}
	return []string{"--root", o.root}
}

// fetch brings a ledger that is kept elsewhere into the file that is judged. Its
// sidecars are dead, though their server may not have noticed yet.
func (s *swarm) fetch(ctx context.Context) error {
	if s.store == "" {
		return nil
	}
	output, err := exec.CommandContext(ctx, s.binary, "copy", "--live", "--from", s.store, "--to", s.root).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskforce copy: %w\n%s", err, output)
	}
	fmt.Printf("taskforce copy: %s", output)
	return nil
}

func (s *swarm) database() string { return filepath.Join(s.root, sqlite.FileName) }

func (s *swarm) open() (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+filepath.ToSlash(s.database())+"?mode=rw")
}

// judgeVerify asks the sidecar's own judge.
func (s *swarm) judgeVerify(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, s.binary, append([]string{"verify"}, s.place()...)...)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		fmt.Printf("taskforce verify: %s", output)
		return nil, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return lines(output), nil
	}
	return nil, fmt.Errorf("taskforce verify: %w\n%s", err, output)
}

//go:embed invariants.sql
var invariants string

// judgeSQL asks the sqlite3 of the machine, or if there is none the engine that
// the sidecar is built with.
func (s *swarm) judgeSQL(ctx context.Context) ([]string, error) {
	stock, err := exec.LookPath("sqlite3")
	if err != nil {
		fmt.Println("there is no sqlite3 here: the queries run in this program's own engine")
		return s.judgeInProcess(ctx)
	}
	cmd := exec.CommandContext(ctx, stock, "-batch", "-bail", s.database())
	cmd.Stdin = strings.NewReader(invariants)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("sqlite3: %w\n%s", err, stderr.Bytes())
	}
	found := lines(stdout.Bytes())
	if len(found) == 1 && found[0] == "ok" {
		fmt.Println("sqlite3: the file is intact, and every invariant holds")
		return nil, nil
	}
	return found, nil
}

func (s *swarm) judgeInProcess(ctx context.Context) (found []string, err error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for query := range strings.SplitSeq(invariants, ";") {
		if strings.TrimSpace(query) == "" {
			continue
		}
		printed, err := texts(ctx, db, query)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(printed, func(line string) bool { return line == "ok" })...)
	}
	return found, nil
}

// texts returns the rows of a query of one column.
func texts(ctx context.Context, db *sql.DB, query string) (list []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

func lines(text []byte) []string {
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
