package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// fill writes a run as the contract's own store leaves it behind: count settled
// reservations over runTasks tasks, each with its charge and three audit rows.
func (d *database) fill(ctx context.Context, run string, count int) error {
	// The file is thrown away if this fails, so nothing here has to be durable.
	if err := d.exec(ctx, "PRAGMA synchronous = OFF", "PRAGMA cache_size = -262144", "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if _, err := d.write(ctx, "openRun", run, unlimited, unlimited, unlimited, unlimited); err != nil {
		return err
	}
	var tasks []admission
	for i := range min(count, runTasks) {
		a, err := d.openTask(ctx, run, i)
		if err != nil {
			return err
		}
		tasks = append(tasks, a)
	}
	for i := range count {
		if err := d.settled(ctx, tasks[i%runTasks], int64(i/runTasks)); err != nil {
			return err
		}
	}
	return d.exec(ctx, "COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)")
}

// settled writes one reservation that was admitted, bound and settled.
func (d *database) settled(ctx context.Context, a admission, generation int64) error {
	const proof = `{"kind":"terminal","outcome":"succeeded","quiescent":true,"evidence":"exit status 0"}`
	id := uuid.NewString()
	key := fmt.Sprintf("task %d, attempt %d", a.task, generation)
	request := fmt.Sprintf(`"task_id":%d,"generation":%d,"mode":"write","kind":"new","resources":[%q]`, a.task, generation, a.resources[0])
	if _, err := d.write(ctx, "addReservation", id, a.run, a.task, key, "{"+request+"}", generation+1, "write", "new", a.session); err != nil {
		return err
	}
	if _, err := d.write(ctx, "addCharge", id, 0, 0); err != nil {
		return err
	}
	if _, err := d.write(ctx, "saveBound", a.session, a.session, id); err != nil {
		return err
	}
	if _, err := d.write(ctx, "saveSettled", proof, id); err != nil {
		return err
	}
	for _, entry := range [][2]string{
		{"reserve", fmt.Sprintf(`{"operation_key":%q,%s,"rework_generation":0,"retry_charge":0}`, key, request)},
		{"bind", fmt.Sprintf(`{"generation":%d,"session_id":%q}`, generation+1, a.session)},
		{"settle", fmt.Sprintf(`{"generation":%d,"proof":%s}`, generation+1, proof)},
	} {
		if _, err := d.write(ctx, "addAudit", a.run, id, entry[0], "lead", "lead-session", entry[1], now()); err != nil {
			return err
		}
	}
	return nil
}
