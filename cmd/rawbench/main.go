// Command rawbench is what the sidecar is measured against: bare programs that
// do a part of its work and nothing else. The driver in clients/node/bench runs
// it; it is not shipped.
//
//	rawbench version                            the versions of Go and of SQLite
//	rawbench echo [FILE]                        answers each line; opens the database first if one is named
//	rawbench answer FILE RUN COUNT              answers each of COUNT lines after the plain SQL of a reserve
//	rawbench reserves FILE RUN COUNT PER_COMMIT the plain SQL of COUNT reserves
//	rawbench fill FILE RUN=COUNT...             writes runs that retain COUNT settled reservations each
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

var errUsage = errors.New("usage: rawbench version | echo [FILE] | answer FILE RUN COUNT | reserves FILE RUN COUNT PER_COMMIT | fill FILE RUN=COUNT")

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rawbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	command, args := args[0], args[1:]
	switch {
	case command == "version" && len(args) == 0:
		return printVersion(ctx)
	case command == "echo" && len(args) == 0:
		return echo(os.Stdin, os.Stdout, nothing)
	case command == "echo" && len(args) == 1:
		return openAndEcho(ctx, args[0])
	case command == "answer" && len(args) == 3:
		return answer(ctx, args)
	case command == "reserves" && len(args) == 4:
		return printReserves(ctx, args)
	case command == "fill" && len(args) >= 2:
		return fillRuns(ctx, args[0], args[1:])
	}
	return errUsage
}

func printVersion(ctx context.Context) error {
	db, err := openDatabase(ctx, ":memory:")
	if err != nil {
		return err
	}
	defer db.close()
	var sqlite string
	if err := db.conn.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&sqlite); err != nil {
		return err
	}
	return print(map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go"), "sqlite": sqlite})
}

// openAndEcho is the least that a sidecar can do before its first answer.
func openAndEcho(ctx context.Context, file string) error {
	db, err := openDatabase(ctx, file)
	if err != nil {
		return err
	}
	defer db.close()
	var tables int
	if err := db.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	return echo(os.Stdin, os.Stdout, nothing)
}

// answer is the least that a sidecar can do for a reserve.
func answer(ctx context.Context, args []string) error {
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return errUsage
	}
	db, err := openBaseline(ctx, args[0])
	if err != nil {
		return err
	}
	defer db.close()
	admissions, err := db.open(ctx, args[1], count)
	if err != nil {
		return err
	}
	return echo(os.Stdin, os.Stdout, func() error {
		if len(admissions) == 0 {
			return errUsage
		}
		next := admissions[:1]
		admissions = admissions[1:]
		return db.commit(ctx, next)
	})
}

func printReserves(ctx context.Context, args []string) error {
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return errUsage
	}
	perCommit, err := strconv.Atoi(args[3])
	if err != nil || perCommit < 1 {
		return errUsage
	}
	db, err := openBaseline(ctx, args[0])
	if err != nil {
		return err
	}
	defer db.close()
	times, err := db.reserves(ctx, args[1], count, perCommit)
	if err != nil {
		return err
	}
	return print(times)
}

func fillRuns(ctx context.Context, file string, runs []string) error {
	db, err := openBaseline(ctx, file)
	if err != nil {
		return err
	}
	defer db.close()
	for _, r := range runs {
		name, text, _ := strings.Cut(r, "=")
		count, err := strconv.Atoi(text)
		if err != nil {
			return errUsage
		}
		if err := db.fill(ctx, name, count); err != nil {
			return err
		}
	}
	return nil
}

func print(value any) error { return json.NewEncoder(os.Stdout).Encode(value) }
