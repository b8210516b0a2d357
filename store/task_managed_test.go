package store_test

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// TestManagedTasksAreLeftToTheOtherWriter, but for cancel.
func TestManagedTasksAreLeftToTheOtherWriter(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	reference.Exec(t, reference.Open(t, l.root), reference.Workflow,
		"INSERT INTO workflow VALUES (1, 'run', 't', 's', 1, 1, '{}', NULL, 1, 0, 'root', '', '')")
	const workflow = "E_STATUS workflow"
	tests := []struct {
		name, caller string
		call         callOf
		status       schema.TaskStatus
		want         string
	}{
		{"claim", "lead", claimFor("owner"), schema.TaskOpen, workflow},
		{"claim again", "owner", claimFor("owner"), schema.TaskClaimed, workflow},
		{"claim by a stranger", "stranger", claimFor("owner"), schema.TaskOpen, notOwner},
		{"claim of a terminal task", "lead", claimFor("owner"), schema.TaskDone, terminalTask},
		{"submit", "owner", noteCall(store.Submit), schema.TaskClaimed, workflow},
		{"submit of a rejected task", "owner", noteCall(store.Submit), schema.TaskRejected, workflow},
		{"submit by a stranger", "stranger", noteCall(store.Submit), schema.TaskClaimed, notOwner},
		{"accept", "lead", noteCall(store.Accept), schema.TaskSubmitted, workflow},
		{"accept by a worker", "owner", noteCall(store.Accept), schema.TaskSubmitted, leadOnly},
		{"reject", "lead", reject, schema.TaskSubmitted, workflow},
		{"reopen", "lead", reject, schema.TaskDone, workflow},
		{"cancel", "lead", noteCall(store.Cancel), schema.TaskClaimed, "cancelled"},
	}
	for _, test := range tests {
		if got := answer(l.try(test.status, "owner", test.call, who[test.caller])); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
