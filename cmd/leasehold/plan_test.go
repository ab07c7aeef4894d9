package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

var update = flag.Bool("update", false, "write the outputs in docs/plan.md, and docs/plan.svg, anew")

var plans = regexp.MustCompile("(?ms)^```\n\\$ leasehold (plan[^\n]*)\n.*?^```$")

// Every output in docs/plan.md is what the command above it prints, and the picture is that of the first one.
func TestPlanPage(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // no configuration file
	t.Setenv("XDG_CONFIG_HOME", "")
	const page, picture = "../../docs/plan.md", "../../docs/plan.svg"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	drawn := filepath.Join(t.TempDir(), "plan.svg")
	n := 0
	fresh := plans.ReplaceAllFunc(text, func(block []byte) []byte {
		m := plans.FindSubmatch(block)
		args := strings.Fields(string(m[1]))
		if n++; n == 1 {
			args = append(args, "--svg", drawn)
		}
		return []byte("```\n$ leasehold " + string(m[1]) + "\n" + printed(t, args) + "```")
	})
	if n < 5 {
		t.Fatalf("%d outputs in %s, want 5 at least", n, page)
	}
	same(t, page, fresh)
	svg, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	same(t, picture, svg)
}

// printed is what the program prints for args.
func printed(t testing.TB, args []string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	a := cli.New()
	a.Out = out
	if code := a.Execute(root(a, args), args); code != 0 {
		t.Fatalf("leasehold %v: exit code %d", args, code)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same sees that a file of the documentation is as computed, or makes it so.
func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the command prints: go test ./cmd/leasehold -run TestPlanPage -update", path)
	}
}
