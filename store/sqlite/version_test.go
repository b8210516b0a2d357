package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// TestNewerSchemaUnderAnOpenStore lets a newer sidecar upgrade the file while
// this one has it open: it must not go on by rules that no longer hold.
func TestNewerSchemaUnderAnOpenStore(t *testing.T) {
	s := openAt(t, t.TempDir())
	defer s.Close()
	nothing := func(store.Tx) error { return nil }
	if err := s.Write(context.Background(), nothing); err != nil {
		t.Fatal(err)
	}
	foreign(t, s.path, "UPDATE sidecar_meta SET value = '999' WHERE key = 'schema_version'")
	for name, run := range map[string]func(context.Context, func(store.Tx) error) error{"write": s.Write, "read": s.Read} {
		var known *schema.Error
		if err := run(context.Background(), nothing); !errors.As(err, &known) || known.Code != schema.ErrStoreVersion {
			t.Errorf("%s: %v, want E_STORE_VERSION", name, err)
		}
	}
}
