package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dsh-taskforce/sidecar/store"
)

// The kinds of locks, in the order in which a transaction takes them. They are
// advisory locks of the transaction: they need no row that would have to be
// made first, and end with the transaction whatever becomes of the client.
const (
	lockMigration = "migration"
	lockStore     = "store"
	lockRun       = "run"
	lockResources = "resources"
	lockResource  = "resource"
)

// manyResources is how many keys one transaction locks one by one. Past that it
// locks all keys at once, because the server's table of locks is small.
const manyResources = 64

// lockKey is the number of a lock. Two names with one number only wait for each other.
func (a *address) lockKey(kind, name string) int64 {
	sum := sha256.Sum256([]byte("taskforce\x00" + a.schema + "\x00" + kind + "\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func (a *address) lockKeys(kind string, names []string) []int64 {
	keys := make([]int64, len(names))
	for i, name := range names {
		keys[i] = a.lockKey(kind, name)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

const (
	lockExclusive = "SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k"
	lockShared    = "SELECT pg_advisory_xact_lock_shared(k) FROM unnest($1::bigint[]) AS k"
)

// lockScope queues the locks of a transaction.
func (t *tx) lockScope(scope *store.Scope) {
	a := t.store.address
	all := []int64{a.lockKey(lockStore, "")}
	if scope == nil {
		t.exclusive = true
		t.queue(lockExclusive, all)
		return
	}
	t.queue(lockShared, all)
	t.queue(lockExclusive, a.lockKeys(lockRun, scope.Runs))
	t.lockResources(scope.Resources, scope.Shared)
}

// resourceLocks are the locks on keys that a transaction has.
type resourceLocks struct {
	all  bool
	some bool
	held map[int64]bool // whether exclusively
}

// lockResources queues the locks on keys that the transaction does not have yet.
func (t *tx) lockResources(resources []string, shared bool) {
	if t.exclusive || t.locks.all || len(resources) == 0 {
		return
	}
	a := t.store.address
	every := []int64{a.lockKey(lockResources, "")}
	if len(resources)+len(t.locks.held) > manyResources {
		t.locks.all = true
		t.early = nil
		t.queue(lockExclusive, every)
		return
	}
	var missing []int64
	for _, key := range a.lockKeys(lockResource, resources) {
		if exclusive, had := t.locks.held[key]; !had || !exclusive && !shared {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return
	}
	t.early = nil // they came before the locks that follow
	if !t.locks.some {
		t.locks.some, t.locks.held = true, map[int64]bool{}
		t.queue(lockShared, every)
	}
	for _, key := range missing {
		t.locks.held[key] = !shared
	}
	if shared {
		t.queue(lockShared, missing)
	} else {
		t.queue(lockExclusive, missing)
	}
}
