// Command apilist keeps the lists of what each public package exports, in api/: one file a package,
// one line a name, a field or a method, sorted. A line that goes or changes breaks programs that
// use it; a line that comes does not.
//
//	apilist          writes the lists
//	apilist check    fails, and shows the difference, when the lists are not those of the code
//	apilist count    prints how many names each package exports, and how many lines its list has
//	apilist beside FOLDER [OLD=NEW…]
//	                 prints a table of the names that each package exports and of the lines that
//	                 go doc prints of it, in the workspace in FOLDER and in this one; a package
//	                 of FOLDER at OLD, or below, is at NEW here
//
// Public is what others can import and use: not below an internal folder, no command, no example.
// The lists are read from what the compiler exports, so the packages have to build.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/leasehold/leasehold"

func main() {
	dir := flag.String("C", ".", "the `folder` of the workspace")
	flag.Parse()
	if err := run(context.Background(), *dir, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apilist:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, args []string, out io.Writer) error {
	folder := filepath.Join(dir, "api")
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch {
	case !slices.Contains([]string{"", "check", "count", "beside"}, verb):
		return fmt.Errorf("%q: want check, count, beside or nothing", verb)
	case verb == "beside" && len(args) < 2:
		return errors.New("beside: no folder: want that of another workspace, such as a worktree of an earlier commit")
	case verb != "beside" && len(args) > 1:
		return fmt.Errorf("%s %s: want no argument behind %s", verb, args[1], verb)
	}
	now, err := lists(dir)
	if err != nil {
		return err
	}
	switch verb {
	case "":
		return write(folder, now)
	case "check":
		before, err := read(folder)
		if err != nil {
			return err
		}
		return compare(out, before, now)
	case "count":
		count(out, now)
		return nil
	}
	return beside(ctx, out, args[1], dir, now, args[2:])
}

// lists returns the list of each public package by its path from the root, a slash at its front
// left out.
func lists(dir string) (map[string][]string, error) {
	paths, err := public(dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	err = list(dir, append([]string{"-export", "-deps", "-json=ImportPath,Export"}, paths...), func(p listed) {
		exports[p.ImportPath] = p.Export
	})
	if err != nil {
		return nil, err
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	all := map[string][]string{}
	for _, path := range paths {
		pkg, err := imp.Import(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if lines := features(pkg); len(lines) > 0 {
			all[strings.TrimPrefix(path, module+"/")] = lines
		}
	}
	return all, nil
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Name, Export string
	GoFiles                  []string
}

// public returns the import paths of the packages that others can import and use.
func public(dir string) ([]string, error) {
	var paths []string
	err := list(dir, []string{"-json=ImportPath,Name,GoFiles", "work"}, func(p listed) {
		own := strings.TrimPrefix(p.ImportPath, module) + "/"
		if p.Name != "main" && len(p.GoFiles) > 0 && !strings.Contains(own, "/internal/") && !strings.HasPrefix(own, "/examples/") {
			paths = append(paths, p.ImportPath)
		}
	})
	return paths, err
}

func list(dir string, args []string, yield func(listed)) error {
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		yield(p)
	}
}

// write replaces the lists in folder.
func write(folder string, all map[string][]string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, lines := range all {
		file := filepath.Join(folder, filepath.FromSlash(name)+".txt")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read returns the lists in folder.
func read(folder string) (map[string][]string, error) {
	all := map[string][]string{}
	fsys := os.DirFS(folder)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		all[strings.TrimSuffix(name, ".txt")] = strings.Split(strings.TrimSpace(string(text)), "\n")
		return err
	})
	return all, err
}

// compare prints what is in one of the lists only, and returns an error when there is anything.
func compare(out io.Writer, before, now map[string][]string) error {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	var gone, come int
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, line := range without(before[name], now[name]) {
			fmt.Fprintf(out, "%s: - %s\n", name, line)
			gone++
		}
		for _, line := range without(now[name], before[name]) {
			fmt.Fprintf(out, "%s: + %s\n", name, line)
			come++
		}
	}
	const fix = "if that is meant, run scripts/api, commit api/, and write what users notice into CHANGELOG.md"
	switch {
	case gone > 0:
		return fmt.Errorf("the exported API changes, incompatibly (lines gone: %d, come: %d): %s", gone, come, fix)
	case come > 0:
		return fmt.Errorf("the exported API grows by %d lines: %s", come, fix)
	}
	return nil
}

func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

func count(out io.Writer, all map[string][]string) {
	var names, lines int
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := exported(all[name])
		fmt.Fprintf(out, "%4d names %4d lines  %s\n", n, len(all[name]), name)
		names, lines = names+n, lines+len(all[name])
	}
	fmt.Fprintf(out, "%4d names %4d lines  in %d packages\n", names, lines, len(all))
}

// exported returns how many names a package exports, by its list.
func exported(lines []string) int {
	n := 0
	for _, line := range lines {
		if !strings.HasPrefix(line, "method ") && !strings.HasPrefix(line, "field ") {
			n++
		}
	}
	return n
}
