package governor_test

import (
	"flag"
	"os"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"pgregory.net/rapid"
)

// The race detector makes SQLite slow, so few cases are drawn unless more are asked for.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}

// TestModel drives the governor and the reference model by the same random
// calls. `make model CHECKS=10000` runs it for longer; a failure prints its
// seed and the steps that led to it.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "model-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		play(t, newFileEngine(t, root))
	})
}

// TestModelOnPostgres does the same on a server.
func TestModelOnPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	rapid.Check(t, func(t *rapid.T) { play(t, newServerEngine(t, server)) })
}

// play drives both by random steps.
func play(t *rapid.T, engine engine) {
	m := newMachine(t, engine)
	defer m.close()
	m.furnish()
	t.Repeat(map[string]func(*rapid.T){
		"call":          func(t *rapid.T) { m.run(sidecarOf(t), draw{t, m.model}.call()) },
		"one more call": func(t *rapid.T) { m.run(sidecarOf(t), draw{t, m.model}.call()) },
		"calls":         func(t *rapid.T) { m.run(sidecarOf(t), drawCalls(t, m.model, false)...) },
		"transaction":   func(t *rapid.T) { m.transact(sidecarOf(t), drawCalls(t, m.model, true)...) },
		"check":         func(t *rapid.T) { m.check(sidecarOf(t), draw{t, m.model}.asking()) },
		"restart":       func(t *rapid.T) { m.reopen(sidecarOf(t)) },
		"other writer":  func(t *rapid.T) { m.otherWriter(draw{t, m.model}) },
	})
}

func sidecarOf(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "sidecar") }

// drawCalls draws a few calls. If they compose, most of them fit what those
// before them have done.
func drawCalls(t *rapid.T, l *model.Ledger, compose bool) (calls []model.Call) {
	l = l.Clone()
	for range rapid.IntRange(2, 4).Draw(t, "calls") {
		c := draw{t, l}.call()
		calls = append(calls, c)
		if compose {
			l.Do(c)
		}
	}
	return calls
}
