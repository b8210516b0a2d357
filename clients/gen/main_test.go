package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedFilesAreCurrent generates in memory and compares with what is committed.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Chdir("../..") // the doc comments are found from the module's root folder
	files, err := generate(".")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.FromSlash(path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not current; run: go run ./clients/gen", path)
		}
	}
}
