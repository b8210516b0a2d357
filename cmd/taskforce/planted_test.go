package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Who guards the guards: three faults are planted in a copy of the sources, and
// the model test, the check of histories and the swarm must each catch each.

// plantedVariable chooses the fault of a program that has all of them.
const plantedVariable = "TASKFORCE_PLANTED"

// faults are what to look for. Each changes one file, at places that occur once.
var faults = []struct {
	name, file string
	changes    []string // pairs of a place and what is put there
}{
	{"skip the writer check", "governor/reserve.go", []string{
		`f.usage.Writers, 1, f.request.Mode == schema.Write`,
		`f.usage.Writers, 1, f.request.Mode == schema.Write && !planted("skip the writer check")`,
	}},
	{"answer before the commit", "store/sqlite/writer.go", []string{
		`if w.unanswered.Load() > 0 || !w.mu.TryLock() {`, // what is queued can be answered too early
		`if planted("answer before the commit") || w.unanswered.Load() > 0 || !w.mu.TryLock() {`,
		`err = c.exec(ctx, "COMMIT")`,
		`for _, member := range batch {
			if planted("answer before the commit") && !member.decided {
				member.done(nil)
				member.done = func(error) {}
			}
		}
		err = c.exec(ctx, "COMMIT")`,
	}},
	{"forget a hold", "store/sqlite/tx_governor.go", []string{
		`const hold = "INSERT INTO governor_hold`,
		`if key == r.Resources[len(r.Resources)-1] && planted("forget a hold") {
			continue
		}
		const hold = "INSERT INTO governor_hold`,
	}},
}

func TestPlantedFaultsAreCaught(t *testing.T) {
	t.Parallel()
	overlay := plant(t)
	sidecar, swarm := build(t, "cmd/taskforce", "-overlay", overlay), build(t, "cmd/swarm")
	modelTest := filepath.Join(t.TempDir(), "model.test")
	if output, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", modelTest,
		"github.com/dsh-taskforce/sidecar/governor").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			t.Run("model", func(t *testing.T) {
				caughtBy(t, "the model says", fault.name, modelTest, "-test.run", "TestModel$", "-rapid.checks=200", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
			})
			t.Run("swarm", func(t *testing.T) {
				caughtBySwarm(t, fault.name, swarm, sidecar)
			})
			t.Run("linear", func(t *testing.T) { caughtByHistories(t, fault.name, sidecar) })
		})
	}
}

// plant writes changed copies of the sources and returns the file that tells
// the compiler to take them.
func plant(t *testing.T) (overlay string) {
	t.Helper()
	module, folder := moduleFolder(t), t.TempDir()
	replace := map[string]string{}
	put := func(file, content string) {
		path := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(module, filepath.FromSlash(file))] = path
	}
	for _, fault := range faults {
		source, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(fault.file)))
		if err != nil {
			t.Fatal(err)
		}
		changed := string(source)
		for change := range slices.Chunk(fault.changes, 2) {
			if strings.Count(changed, change[0]) != 1 {
				t.Fatalf("%s has no longer the one place %q to plant a fault in", fault.file, change[0])
			}
			changed = strings.Replace(changed, change[0], change[1], 1)
		}
		put(fault.file, changed)
		parts := strings.Split(filepath.ToSlash(filepath.Dir(fault.file)), "/")
		put(filepath.ToSlash(filepath.Dir(fault.file))+"/planted.go", "package "+parts[len(parts)-1]+"\n\nimport \"os\"\n\n"+
			"func planted(name string) bool { return os.Getenv(\""+plantedVariable+"\") == name }\n")
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

func moduleFolder(t *testing.T) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// caughtBySwarm lets the swarm loose until it catches the fault: whether a kill
// falls into the moment that matters is chance.
func caughtBySwarm(t *testing.T, fault, swarm, sidecar string) {
	t.Helper()
	const most = 10
	for seed := 1; seed <= most; seed++ {
		output, err := runPlanted(t, fault, swarm, "-n", "1000", "-procs", "8", "-seed", fmt.Sprint(seed), "-binary", sidecar, "-root", t.TempDir())
		if err == nil {
			continue
		}
		if !strings.Contains(output, "violation:") {
			t.Fatalf("failed otherwise: %v\n%s", err, output)
		}
		return
	}
	t.Errorf("not caught by %d swarms", most)
}

// caughtBy runs a check that must fail and say so in these words.
func caughtBy(t *testing.T, words, fault, name string, arguments ...string) {
	t.Helper()
	output, err := runPlanted(t, fault, name, arguments...)
	switch {
	case err == nil:
		t.Errorf("not caught:\n%s", output)
	case !strings.Contains(output, words):
		t.Errorf("failed otherwise:\n%s", output)
	}
}

// runPlanted runs a program with the fault. The error is its exit status.
func runPlanted(t *testing.T, fault, name string, arguments ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Env = append(os.Environ(), plantedVariable+"="+fault)
	cmd.Dir = t.TempDir()
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(output), err
}

// caughtByHistories records histories until one cannot be explained.
func caughtByHistories(t *testing.T, fault, sidecar string) {
	t.Helper()
	const most = 20
	for i := range most {
		err := linearRound(sidecar, []string{"--root", t.TempDir()}, uint64(i), plantedVariable+"="+fault)
		var found *notLinearizable
		var doubled *admittedTwice
		switch {
		case errors.As(err, &found):
			os.Remove(found.picture)
			return
		case errors.As(err, &doubled):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
	t.Errorf("not caught in %d histories", most)
}
