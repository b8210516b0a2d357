package main

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	tests := []struct{ since, want string }{
		{"2026-01-10T12:00:00.000Z", "0s"},
		{"2026-01-10T11:59:00.001Z", "59s"},
		{"2026-01-10T11:56:48.000Z", "3m12s"},
		{"2026-01-10T09:55:59.000Z", "2h4m"},
		{"2026-01-07T11:00:00.000Z", "3d1h"},
		{"2026-01-10T12:00:05.000Z", "0s"}, // a clock that goes ahead
		{"yesterday", "?"},
	}
	for _, test := range tests {
		if got := age(&test.since, now); got != test.want {
			t.Errorf("age(%s) = %s, want %s", test.since, got, test.want)
		}
	}
	if got := age(nil, now); got != "-" {
		t.Errorf("the age of nothing is %s", got)
	}
}

func TestReadable(t *testing.T) {
	tests := []struct{ key, want string }{
		{"run-a", "run-a"},
		{"two words", "two words"},
		{"rün 🔒", "rün 🔒"},
		{"", `""`},
		{" run ", `" run "`},
		{`"run"`, `"\"run\""`},
		{"a\tb", `"a\tb"`},
		{"\x1b[31m", `"\x1b[31m"`},
		{"a\u202eb", `"a\u202eb"`},
		{"a\u2028b", `"a\u2028b"`},
		{"\xff", `"\xff"`},
	}
	for _, test := range tests {
		if got := readable(test.key); got != test.want {
			t.Errorf("readable(%q) = %s, want %s", test.key, got, test.want)
		}
	}
}

func TestBar(t *testing.T) {
	const most = 1<<53 - 1
	tests := []struct {
		used, limit int64
		want        string
	}{
		{0, 6, "........"},
		{1, 1000, "#......."},
		{4, 6, "######.."},
		{5, 6, "#######."},
		{999, 1000, "#######."},
		{6, 6, "########"},
		{9, 6, "########"},
		{most - 1, most, "#######."},
		{0, 0, "########"},
	}
	for _, test := range tests {
		if got := plainBlocks.bar(test.used, test.limit); got != test.want {
			t.Errorf("bar(%d, %d) = %s, want %s", test.used, test.limit, got, test.want)
		}
	}
}
