package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// proxy is a folder that the go command can use as GOPROXY=file://….
type proxy string

// publish writes the modules of the workspace, whose worktree is rewritten, and their go.sum files.
func (p proxy) publish(w *Workspace, r repo, version string, when time.Time) error {
	order, err := w.order()
	if err != nil {
		return err
	}
	if _, err := r.git("add", "--all"); err != nil {
		return err
	}
	sums := map[string][]string{}
	for _, m := range order {
		var lines []string
		for _, s := range w.siblings(m) {
			lines = append(lines, sums[s.Path]...)
		}
		if err := addSums(w.file(m.Dir, "go.sum"), lines); err != nil {
			return err
		}
		tree, err := r.tree(path.Join(m.Dir, "go.sum"))
		if err != nil {
			return err
		}
		if sums[m.Path], err = p.add(w, m, r, tree, version, when); err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
	}
	return nil
}

// add writes one module as it is in the tree, and returns its lines of go.sum.
func (p proxy) add(w *Workspace, m *Module, r repo, tree, version string, when time.Time) ([]string, error) {
	of := module.Version{Path: m.Path, Version: version}
	base, err := p.base(of)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	subdir := m.Dir
	if subdir == "." {
		subdir = ""
	}
	if err := zip.CreateFromVCS(&data, of, string(r), tree, subdir); err != nil {
		return nil, err
	}
	if err := os.WriteFile(base+".zip", data.Bytes(), 0o644); err != nil {
		return nil, err
	}
	if err := p.complete(r, m, tree, of, base+".zip"); err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(w.file(m.Dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, when})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{base + ".mod": mod, base + ".info": info, filepath.Join(filepath.Dir(base), "list"): []byte(version + "\n")} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return nil, err
		}
	}
	return hashes(of, base)
}

func (p proxy) base(of module.Version) (string, error) {
	escaped, err := module.EscapePath(of.Path)
	if err != nil {
		return "", err
	}
	v, err := module.EscapeVersion(of.Version)
	return filepath.Join(string(p), filepath.FromSlash(escaped), "@v", v), err
}

// hashes returns the two lines that go.sum has of a module in a proxy.
func hashes(of module.Version, base string) ([]string, error) {
	h, err := dirhash.HashZip(base+".zip", dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	hmod, err := modHash(base + ".mod")
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s", of.Path, of.Version, h),
		fmt.Sprintf("%s %s/go.mod %s", of.Path, of.Version, hmod),
	}, nil
}

func modHash(file string) (string, error) {
	return dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(file) })
}

// addSums adds the lines to a go.sum file, which need not exist.
func addSums(file string, lines []string) error {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	all := slices.Concat(strings.Split(strings.TrimSpace(string(text)), "\n"), lines)
	all = slices.DeleteFunc(all, func(line string) bool { return line == "" })
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, bySum)
	return os.WriteFile(file, []byte(strings.Join(slices.Compact(all), "\n")+"\n"), 0o644)
}

// bySum orders the lines of a go.sum file as the go command does.
func bySum(a, b string) int {
	x, y := sumKey(a), sumKey(b)
	pair := []module.Version{x, y}
	module.Sort(pair)
	switch {
	case x == y:
		return strings.Compare(a, b)
	case pair[0] == x:
		return -1
	}
	return 1
}

func sumKey(line string) module.Version {
	f := append(strings.Fields(line), "", "")
	return module.Version{Path: f[0], Version: f[1]}
}

// complete returns an error unless the zip has all that git has of the module, so that no embedded
// file, no test data and no license is left out.
func (p proxy) complete(r repo, m *Module, tree string, of module.Version, file string) error {
	listed, err := r.git("ls-tree", "-r", "--full-tree", tree, "./"+m.Dir)
	if err != nil {
		return err
	}
	checked, err := zip.CheckZip(of, file)
	if err != nil {
		return err
	}
	in := map[string]bool{}
	for _, name := range checked.Valid {
		in[strings.TrimPrefix(name, of.Path+"@"+of.Version+"/")] = true
	}
	var nested, left []string
	scan := bufio.NewScanner(strings.NewReader(listed))
	var names []string
	for scan.Scan() {
		mode, name, _ := strings.Cut(scan.Text(), "\t")
		if m.Dir != "." {
			name = strings.TrimPrefix(name, m.Dir+"/")
		}
		if !strings.HasPrefix(mode, "100") {
			return fmt.Errorf("file %s: it is no regular file, so no module can have it: replace the link by what it points to", name)
		}
		if folder, ok := strings.CutSuffix(name, "/go.mod"); ok {
			nested = append(nested, folder+"/")
		}
		names = append(names, name)
	}
	for _, name := range names {
		inNested := slices.ContainsFunc(nested, func(folder string) bool { return strings.HasPrefix(name, folder) })
		if !in[name] && !inNested {
			left = append(left, name)
		}
	}
	switch {
	case len(left) > 0:
		return fmt.Errorf("file %s: it is in the repository and not in the module's zip (no folder may be named vendor, no attribute may be export-ignore): move it", strings.Join(left, ", "))
	case !in["LICENSE"]:
		return fmt.Errorf("file LICENSE: the module's zip has none: add one to the root")
	}
	return scan.Err()
}

// merge adds what others have, so that the go command finds all versions in one place, as it does
// in a public proxy: it asks several in turn only for what the first has no prefix of.
func (p proxy) merge(others ...proxy) error {
	for _, from := range others {
		err := filepath.WalkDir(string(from), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(string(from), name)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			to := filepath.Join(string(p), rel)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if d.Name() == "list" {
				have, err := os.ReadFile(to)
				if err != nil && !os.IsNotExist(err) {
					return err
				}
				text = append(have, text...)
			}
			return os.WriteFile(to, text, 0o644)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
