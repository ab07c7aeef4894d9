package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
)

// Use says who relies on a package, and so what may change in it.
type Use int

// From the loosest to the strictest.
const (
	// Internal to the core, imported by siblings: one minor version is compatible in itself.
	Shared Use = iota
	Public     // exported: programs import it
	// Imported by modules that are not in lockstep: compatible over minor versions, too.
	Guards
)

// surface returns the packages whose API counts, with their use.
func (w *Workspace) surface() map[string]Use {
	all := map[string]Use{}
	for _, m := range w.Modules {
		if !m.Published {
			continue
		}
		for _, p := range m.Packages {
			if p.Name != "" && p.Name != "main" && !strings.Contains(p.Path+"/", "/internal/") {
				all[p.Path] = max(all[p.Path], Public)
			}
			if m.Dir == "." {
				continue
			}
			for _, imported := range p.Imports {
				if s := w.home(imported); s == nil || s == m {
					continue
				}
				switch {
				case !m.Lockstep:
					all[imported] = Guards
				case strings.Contains(imported, "/internal/") && !strings.Contains(imported, "/internal/lockstep/"):
					all[imported] = max(all[imported], Shared)
				}
			}
		}
	}
	return all
}

// Change is one difference between the APIs of two trees.
type Change struct {
	Package    string
	Use        Use
	Text       string
	Compatible bool
}

func (c Change) String() string {
	kind := "incompatible"
	if c.Compatible {
		kind = "compatible"
	}
	return fmt.Sprintf("%s: %s: %s", c.Package, kind, c.Text)
}

// changes compares what counts of two workspaces.
func changes(before, now *Workspace) ([]Change, error) {
	uses := now.surface()
	for path, use := range before.surface() {
		uses[path] = max(uses[path], use)
	}
	old, err := before.exports(uses)
	if err != nil {
		return nil, err
	}
	current, err := now.exports(uses)
	if err != nil {
		return nil, err
	}
	var all []Change
	for path, use := range uses {
		a, b := old[path], current[path]
		switch {
		case a == nil && b != nil:
			all = append(all, Change{path, use, "package added", true})
		case a != nil && b == nil:
			all = append(all, Change{path, use, "package removed", false})
		case a != nil:
			for _, c := range apidiff.Changes(a, b).Changes {
				all = append(all, Change{path, use, c.Message, c.Compatible})
			}
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// exports loads the packages of the workspace that are there, as the compiler exports them.
func (w *Workspace) exports(uses map[string]Use) (map[string]*types.Package, error) {
	var paths []string
	for path := range uses {
		if m := w.home(path); m != nil && m.pkg(path) != nil && m.pkg(path).Name != "" {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return map[string]*types.Package{}, nil
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, paths...)...)
	cmd.Dir, cmd.Stderr, cmd.Env = w.Root, &stderr, append(os.Environ(), "GOWORK="+w.file("go.work"))
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export in %s: %w\n%s", w.Root, err, &stderr)
	}
	files := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		files[p.ImportPath] = p.Export
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	all := map[string]*types.Package{}
	for _, path := range paths {
		if all[path], err = imp.Import(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}
