package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCopiesTakeTurns runs three copies of the program at once, all writing to one file.
func TestCopiesTakeTurns(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "embedded")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shared, err := os.OpenFile(filepath.Join(dir, "out"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shared.Close() }()
	var copies []*exec.Cmd
	for range 3 {
		cmd := exec.CommandContext(t.Context(), program, filepath.Join(dir, "jobs.db"))
		cmd.Stdout, cmd.Stderr = shared, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, cmd)
	}
	for _, cmd := range copies {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(shared.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 9 {
		t.Fatalf("got %d lines, want 3 of each copy:\n%s", len(lines), text)
	}
	var last uint64
	for i, line := range lines {
		var token uint64
		var step int
		if _, err := fmt.Sscanf(line, "token %d: step %d of 3", &token, &step); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if step != i%3+1 || (step == 1) != (token > last) || token < last {
			t.Errorf("the copies did not take turns:\n%s", text)
			break
		}
		last = token
	}
}

// TestModules holds modules.txt, the list of all that the program links.
func TestModules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	want, err := os.ReadFile("modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(linked, "\n") + "\n"; got != string(want) {
		t.Errorf("the program links\n%s\nmodules.txt says\n%s", got, want)
	}
}
