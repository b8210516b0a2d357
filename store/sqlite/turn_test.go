package sqlite

import (
	"path/filepath"
	"testing"
	"time"
)

// TestTurnThatComesLate: a writer that went on without its turn keeps the turn
// when it comes, until the transaction is over. If it gave it back, the others
// would go on taking turns, and it would wait for SQLite's lock against all of
// them, by polling, until its busy timeout.
func TestTurnThatComesLate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "turn")
	first, late, other := openTurn(path), openTurn(path), openTurn(path)
	for _, turn := range []*turn{first, late, other} {
		if turn == nil {
			t.Fatal("no lock file")
		}
		defer turn.close()
	}
	first.take()
	late.take() // gives up waiting
	first.give()
	late.await(t)
	began := time.Now()
	other.take()
	if took := time.Since(began); took < turnWait {
		t.Errorf("another writer had the turn after %v", took)
	}
	other.give()
	late.give()
	other.take()
	defer other.give()
	other.await(t)
}

// await waits until the writer has the turn, which the goroutine that waits for
// the locks brings.
func (t *turn) await(tb testing.TB) {
	tb.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		t.mu.Lock()
		held := t.held
		t.mu.Unlock()
		if held {
			return
		}
	}
	tb.Fatal("the turn does not come")
}
