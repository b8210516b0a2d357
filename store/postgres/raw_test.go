package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// RawHost sends the statements of a cycle by pgx alone, in the round trips in
// which the engine sends them. It decides nothing: it is what a cycle costs
// without governor and engine.
type RawHost struct {
	store *Store
	conn  *pgx.Conn
	run   string
	task  int64
	key   string
	last  runCount
	batch *pgx.Batch
}

// NewRawHost makes a host of a run with one task.
func NewRawHost(s *Store, conn *pgx.Conn, run string, task int64) *RawHost {
	return &RawHost{store: s, conn: conn, run: run, task: task, key: "resource of " + run, batch: &pgx.Batch{}}
}

func (h *RawHost) queue(query string, args ...any) {
	h.batch.Queue(h.store.query(query), args...)
}

func (h *RawHost) send() error {
	batch := h.batch
	h.batch = &pgx.Batch{}
	return h.conn.SendBatch(context.Background(), batch).Close()
}

// begin queues what every write begins with.
func (h *RawHost) begin(keys bool) {
	a := h.store.address
	h.queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	h.queue(settings, "5000", "5000")
	h.queue(lockShared, []int64{a.lockKey(lockStore, "")})
	h.queue(lockExclusive, []int64{a.lockKey(lockRun, h.run)})
	if keys {
		h.queue(lockShared, []int64{a.lockKey(lockResources, "")})
		h.queue(lockExclusive, []int64{a.lockKey(lockResource, h.key)})
	}
	h.queue(identity)
}

func (h *RawHost) audit(reservation, action, details string) {
	h.queue(insertAudit, h.run, reservation, action, "lead", "lead", details, "2026-01-01T00:00:00.000Z")
	h.queue("COMMIT")
}

// Cycle makes the n-th admission, from 0, its bind and its settlement.
func (h *RawHost) Cycle(n int64) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	reservation, run := id.String(), digest(h.run)
	operation := fmt.Sprintf("task %d, admission %d", h.task, n)
	payload := fmt.Sprintf(`{"task_id":%d,"generation":%d,"mode":"write","kind":"reuse","resources":[%q]}`, h.task, n, h.key)
	h.begin(true)
	h.queue(taskByID, h.task)
	h.queue(laterOfTask, h.task, n, h.last.reservation)
	h.queue(activeOfTask, h.task)
	h.queue(reservationByOperation, run, digest(operation))
	h.queue(limitsOfRun, run)
	h.queue(activeOfRun, run)
	h.queue(laterOfRun, run, h.last.row, h.last.reservation)
	h.queue(holdsOnResource, digest(h.key), true)
	if err := h.send(); err != nil {
		return err
	}
	var row int64
	h.batch.Queue(h.store.query(insertReservation), reservation, h.run, h.task, operation, payload, n+1, "write", "reuse", "reserved", "s").
		QueryRow(func(r pgx.Row) error { return r.Scan(&row) })
	h.queue(insertCharge, reservation, 0, 0, "admission")
	h.queue(insertHold, reservation, h.key, "write")
	h.audit(reservation, "reserve", payload)
	if err := h.send(); err != nil {
		return err
	}
	h.last = runCount{row: row, reservation: reservation}
	for _, state := range []string{"running", "settled"} {
		if err := h.move(reservation, state, n+1); err != nil {
			return err
		}
	}
	return nil
}

// move is a bind or a settlement.
func (h *RawHost) move(reservation, state string, generation int64) error {
	h.begin(false)
	h.queue(reservationByID, reservation)
	h.queue(chargeOfReservation, reservation)
	h.queue(taskByID, h.task)
	h.queue(laterOfTask, h.task, generation, reservation)
	if err := h.send(); err != nil {
		return err
	}
	var settlement *string
	if state == "settled" {
		settlement = new(`{"kind":"terminal","outcome":"succeeded","quiescent":true,"evidence":"log"}`)
	}
	h.queue(updateReservation, state, "s", "s", settlement, reservation)
	if state == "settled" {
		h.queue(deleteHolds, reservation)
	}
	h.audit(reservation, "settle", `{"generation":1}`)
	return h.send()
}
