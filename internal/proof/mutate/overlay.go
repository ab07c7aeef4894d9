package mutate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// seededPath is the package that says which mutant is on; mutated code imports it.
const (
	seededPath  = "github.com/leasehold/leasehold/internal/proof/seeded"
	seededFile  = "internal/proof/seeded/build.go"
	seededBuild = `package seeded

import (
	"os"
	"sync"
)

const Built = true

var (
	Bug  = os.Getenv("` + Env + `")
	into = os.Getenv("` + TraceEnv + `")
	seen sync.Map
)

// On returns the mutant that is on. It is called by the mutated function of that name, which a trace has once.
func On(function string) string {
	if into != "" {
		trace(function)
	}
	return Bug
}

func trace(function string) {
	if _, already := seen.LoadOrStore(function, true); already {
		return
	}
	f, err := os.OpenFile(into, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.WriteString(function + "\n")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}
`
)

const (
	// Env is the environment variable that switches a mutant on in a program that was built with
	// some.
	Env = "LEASEHOLD_MUTANT"
	// TraceEnv names a file that such a program adds each mutated function to that it runs.
	TraceEnv = "LEASEHOLD_MUTANT_TRACE"
)

// Root returns the folder of the checkout that dir is in: that of go.work.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.work in this folder or above: run it in the checkout")
		}
		dir = up
	}
}

// files are the texts of mutated files, by their paths from the root.
type files map[string]string

// write writes the files into dir, and beside them the overlay that puts them in the place of
// root's. It returns the overlay's path.
func (f files) write(root, dir string) (string, error) {
	replace := map[string]string{}
	all := files{seededFile: seededBuild}
	for path, text := range f {
		all[path] = text
	}
	for path, text := range all {
		to := filepath.Join(dir, "files", filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(path))] = to
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// read reads and parses a file of the checkout.
func read(root, path string) (*source, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	s, err := parse(path, string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
