package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripts/new-engine, in a copy of the workspace, makes an engine that passes vet, the conformance suite and the rules of the house.
// The list of modules is what internal/release makes of it.
func TestTheSkeletonConforms(t *testing.T) {
	root := copied(t)
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if said := run("scripts/new-engine", "cassandra"); !strings.Contains(said, "To be done") {
		t.Fatalf("it says %q", said)
	}
	run("go", "vet", "./store/cassandra/...")
	run("go", "test", "-count=1", "./store/cassandra/...", "./internal/proof/archtest")
	run("go", "test", "-count=1", "-run", "^TestModulesAreListed$", "./internal/release")
	if said := run("gofmt", "-l", "store/cassandra", "internal/proof/archtest"); said != "" {
		t.Errorf("not formatted: %s", said)
	}
}

// copied returns a copy of the workspace.
func copied(t *testing.T) string {
	t.Helper()
	from, to := filepath.Join("..", "..", ".."), t.TempDir()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case rel == ".git" || rel == "bin" || rel == "dist":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestBadNamesChangeNothing(t *testing.T) {
	root := t.TempDir() // without the files that list engines
	if err := os.MkdirAll(filepath.Join(root, "store", "etcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"": "want a name", "My": "want a name", "a-b": "want a name", "../x": "want a name", "1a": "want a name", "func": "want a name", "etcd": "is there already",
	} {
		var out bytes.Buffer
		if err := makeEngine(root, name, &out); err == nil || !strings.Contains(err.Error(), says) || out.Len() > 0 {
			t.Errorf("%q: %v %q, want an error with %q", name, err, &out, says)
		}
	}
}

// Rows are sorted in among their siblings, wherever the name belongs.
func TestRows(t *testing.T) {
	for _, name := range []string{"aerospike", "mongo", "zz"} {
		root := t.TempDir()
		for _, r := range table {
			path := filepath.Join(root, r.file)
			text, err := os.ReadFile(filepath.Join("..", "..", "..", r.file))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(path), 0o755)
			}
			if err == nil {
				err = os.WriteFile(path, text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := rows(root, name); err != nil {
			t.Fatal(err)
		}
		for _, r := range table {
			text, err := os.ReadFile(filepath.Join(root, r.file))
			if err != nil {
				t.Fatal(err)
			}
			line := strings.ReplaceAll(r.line, "NAME", name)
			lines := strings.Split(string(text), "\n")
			found := 0
			for i, l := range lines {
				if l != line {
					continue
				}
				found++
				if !r.last && (r.among.MatchString(lines[i-1]) && lines[i-1] > l || r.among.MatchString(lines[i+1]) && lines[i+1] < l) {
					t.Errorf("%s: %q stands between %q and %q", r.file, l, lines[i-1], lines[i+1])
				}
			}
			if found != 1 {
				t.Errorf("%s has %q %d times", r.file, line, found)
			}
		}
	}
}
