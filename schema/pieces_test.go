package schema

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestPiecesAreOneText appends more than one piece holds.
func TestPiecesAreOneText(t *testing.T) {
	var items Pieces
	var want []string
	for i := range 2000 {
		text := string(bytes.Repeat([]byte{'a' + byte(i%26)}, i))
		want = append(want, text)
		if err := items.Item(text); err != nil {
			t.Fatal(err)
		}
	}
	if len(items) < 2 {
		t.Fatalf("%d bytes lie in one piece", len(items[0]))
	}
	var list, empty Pieces
	list.List(items)
	empty.List(nil)
	var got []string
	if err := json.Unmarshal(bytes.Join(list, nil), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d items, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("item %d differs", i)
		}
	}
	if text, err := Encode(empty); err != nil || string(text) != "[]" {
		t.Errorf("an empty list is %s, %v", text, err)
	}
}
