package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every refusal that the clients' transcripts show has the members that are
// declared for its code, and no others.
func TestDetailsAreWhatRefusalsHold(t *testing.T) {
	paths, err := filepath.Glob("../testdata/transcripts/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var transcript struct {
			Steps []struct{ Error map[string]any }
		}
		if err := json.Unmarshal(text, &transcript); err != nil {
			t.Fatal(err)
		}
		for i, step := range transcript.Steps {
			if step.Error != nil {
				checkDetails(t, filepath.Base(path), i+1, step.Error)
			}
		}
	}
}

func checkDetails(t *testing.T, file string, step int, data map[string]any) {
	code, _ := data["code"].(string)
	declared := detailsOf(code)
	for _, name := range declared.always {
		if data[name] == nil {
			t.Errorf("%s, step %d: %s without %s", file, step, code, name)
		}
	}
	known := slices.Concat([]string{"code", "retryable"}, declared.always, declared.sometimes)
	for name := range data {
		if !slices.Contains(known, name) {
			t.Errorf("%s, step %d: %s has %s", file, step, code, name)
		}
	}
}
