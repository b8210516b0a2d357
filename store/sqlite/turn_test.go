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
	first, late, other := openTurn(path, DefaultBusyTimeout), openTurn(path, DefaultBusyTimeout), openTurn(path, DefaultBusyTimeout)
	for _, turn := range []*turn{first, late, other} {
		if turn == nil {
			t.Fatal("no lock file")
		}
		defer turn.close()
	}
	first.take()
	late.take() // gives up waiting
	first.give()
	late.waitForTurn(t)
	began := time.Now()
	other.take()
	if took := time.Since(began); took < turnWait-turnLook {
		t.Errorf("another writer had the turn after %v", took)
	}
	other.give()
	late.give()
	other.take()
	defer other.give()
	other.waitForTurn(t)
}

// TestQueueIsNotLeft while it moves: a writer waits for its turn for as long as
// others take theirs, because one that leaves the queue has to win SQLite's lock
// against all of them.
func TestQueueIsNotLeft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "turn")
	holder, waiting := openTurn(path, time.Hour), openTurn(path, time.Hour)
	defer holder.close()
	defer waiting.close()
	holder.take()
	over := make(chan struct{})
	go func() {
		defer close(over)
		waiting.take()
	}()
	moves := time.NewTicker(turnLook)
	defer moves.Stop()
	for range 3 * turnWait / turnLook { // as if one after another took a turn
		<-moves.C
		holder.countTurn()
	}
	select {
	case <-over:
		t.Error("the queue was left")
	default:
	}
	holder.give()
	<-over
	if !waiting.held {
		t.Error("the turn was not had")
	}
	waiting.give()
}

// TestTurnOfAStoppedProcess delays others once: they go on without.
func TestTurnOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "turn")
	stopped, other := openTurn(path, time.Hour), openTurn(path, time.Hour)
	defer stopped.close()
	defer other.close()
	stopped.take()
	other.take() // comes back
	if other.held || !other.late {
		t.Errorf("held %v, late %v", other.held, other.late)
	}
	other.give()
	if other.takeNow() {
		t.Error("the turn was had while another has it")
	}
	other.take() // at once, or the test would last for an hour
	other.give()
	stopped.give()
}

// waitForTurn waits until the writer has the turn, which the goroutine that waits for
// the locks brings.
func (t *turn) waitForTurn(tb testing.TB) {
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
