package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// install installs the command as users do, and runs it.
func (c *consumer) install() error {
	if _, err := c.run(c.work, "go", "install", c.w.Path+"/cmd/leasehold@"+c.version); err != nil {
		return err
	}
	bin := filepath.Join(c.work, "bin", "leasehold")
	out, err := c.run(c.work, bin, "version")
	if err != nil {
		return err
	}
	if !strings.Contains(out, strings.TrimPrefix(c.version, "v")) {
		return fmt.Errorf("leasehold version says %q: want %s in it", out, c.version)
	}
	out, err = c.run(c.work, bin, "run", "--store", "file://"+filepath.Join(c.work, "leases"), "job", "--", "sh", "-c", "echo token $LEASEHOLD_TOKEN")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "token ") || out == "token \n" {
		return fmt.Errorf("leasehold run printed %q: want the token that its command has", out)
	}
	return nil
}

// folder makes a module of a stranger.
func (c *consumer) folder(name string, files map[string]string) (string, error) {
	dir := filepath.Join(c.work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	_, err := c.run(dir, "go", "mod", "init", "example.com/"+name)
	return dir, err
}

const coreProgram = `package main

import (
	"context"
	"fmt"
	"time"

	"CORE/lease"
	"CORE/store/memory"
)

func main() {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{TTL: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	l, err := m.Acquire(context.Background(), "job")
	if err != nil {
		panic(err)
	}
	fmt.Println("token", l.Token())
}
`

// coreAlone has a program that keeps its leases in memory, and sees which modules that brings.
func (c *consumer) coreAlone() error {
	dir, err := c.folder("alone", map[string]string{"main.go": strings.ReplaceAll(coreProgram, "CORE", c.w.Path)})
	if err != nil {
		return err
	}
	if _, err := c.run(dir, "go", "get", c.w.Path+"@"+c.version); err != nil {
		return err
	}
	if _, err := c.run(dir, "go", "mod", "tidy"); err != nil {
		return err
	}
	out, err := c.run(dir, "go", "run", ".")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "token ") {
		return fmt.Errorf("the program printed %q: want its token", out)
	}
	out, err = c.run(dir, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	if err != nil {
		return err
	}
	for path := range strings.FieldsSeq(out) {
		if path != c.w.Path && path != "example.com/alone" && !strings.HasPrefix(path, "golang.org/x/") {
			return fmt.Errorf("a program with the core alone links %s: want nothing but golang.org/x", path)
		}
	}
	return nil
}

const fileProgram = `package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"CORE/lease"
	"CORE/store/file"
)

func main() {
	s, err := file.Open(context.Background(), os.Args[1], file.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	m, err := lease.NewManager(s, lease.Options{TTL: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	l, err := m.Acquire(context.Background(), "job")
	if err != nil {
		panic(err)
	}
	defer l.Release(context.Background())
	fmt.Println("token", l.Token())
}
`

// libraries returns the packages of the published siblings that programs import.
func (c *consumer) libraries() []string {
	var all []string
	for _, m := range c.w.Modules {
		for _, p := range m.Packages {
			if m.Published && m.Dir != "." && len(p.Imports) > 0 && p.Name != "main" && !strings.Contains(p.Path, "/internal/") {
				all = append(all, p.Path)
			}
		}
	}
	return all
}

// imports is a package that imports others and uses nothing of them.
func imports(packages []string) string {
	text := "// Package all imports what it names.\npackage all\n\nimport (\n"
	for _, p := range packages {
		text += fmt.Sprintf("\t_ %q\n", p)
	}
	return text + ")\n"
}

// program builds and vets one package with every library of the release, and runs one with the file
// engine.
func (c *consumer) program() error {
	all := c.libraries()
	dir, err := c.folder("all", map[string]string{"all.go": imports(all)})
	if err != nil {
		return err
	}
	if err := c.get(dir, c.version, "."); err != nil {
		return err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "."}, {"vet", "."}, {"mod", "verify"}} {
		if _, err := c.run(dir, "go", args...); err != nil {
			return err
		}
	}
	if dir, err = c.folder("file", map[string]string{"main.go": strings.ReplaceAll(fileProgram, "CORE", c.w.Path)}); err != nil {
		return err
	}
	if err := c.get(dir, c.version, "store/file"); err != nil {
		return err
	}
	out, err := c.run(dir, "go", "run", ".", filepath.Join(c.work, "of-a-program"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(out, "token ") {
		return fmt.Errorf("the program with the file engine printed %q: want its token", out)
	}
	return nil
}

// get requires modules of the release at a version: those in the folders, or with "." all.
func (c *consumer) get(dir, version string, folders ...string) error {
	args := []string{"get"}
	for _, m := range c.w.Modules {
		all := slices.Equal(folders, []string{"."}) && m.Published && !strings.HasPrefix(m.Dir, "cmd/")
		if all || slices.Contains(folders, m.Dir) {
			args = append(args, m.Path+"@"+version)
		}
	}
	_, err := c.run(dir, "go", args...)
	return err
}

// patch takes the next patch of one engine in a program with two.
func (c *consumer) patch() error {
	next, _ := c.patchAndMinor()
	dir, err := c.two("patched")
	if err != nil {
		return err
	}
	if err := c.get(dir, next, "store/redis"); err != nil {
		return err
	}
	if _, err := c.run(dir, "go", "build", "."); err != nil {
		return err
	}
	out, err := c.run(dir, "go", "list", "-m", "-f", "{{.Version}}", c.w.Path, c.w.Path+"/store/file", c.w.Path+"/store/redis")
	if err != nil {
		return err
	}
	if want := []string{next, c.version, next}; !slices.Equal(strings.Fields(out), want) {
		return fmt.Errorf("core, file and redis are at %v: want %v", strings.Fields(out), want)
	}
	return nil
}

// two makes a module with two engines of the release.
func (c *consumer) two(name string) (string, error) {
	dir, err := c.folder(name, map[string]string{"all.go": imports([]string{c.w.Path + "/store/file", c.w.Path + "/store/redis"})})
	if err != nil {
		return "", err
	}
	if err := c.get(dir, c.version, "store/file", "store/redis"); err != nil {
		return "", err
	}
	_, err = c.run(dir, "go", "mod", "tidy")
	return dir, err
}

// skew takes the next minor version of one of two engines, or of the core, and sees that nothing is
// compiled; then of all, which fit.
func (c *consumer) skew() error {
	_, next := c.patchAndMinor()
	for _, ahead := range []string{"store/redis", "."} {
		dir, err := c.two("skewed-" + strings.Trim(filepath.Base(ahead), "."))
		if err != nil {
			return err
		}
		args := []string{"get", strings.TrimSuffix(c.w.Path+"/"+ahead, "/.") + "@" + next}
		_, gotten := c.run(dir, "go", args...) // it may say so itself already
		_, built := c.run(dir, "go", "build", ".")
		_, tidied := c.run(dir, "go", "mod", "tidy")
		for verb, err := range map[string]error{"build": built, "mod tidy": tidied} {
			if err := c.refused(errors.Join(gotten, err), next); err != nil {
				return fmt.Errorf("go %s with %s at %s: %w", verb, ahead, next, err)
			}
		}
		if err := c.get(dir, next, ".", "store/file", "store/redis"); err != nil {
			return err
		}
		if _, err := c.run(dir, "go", "build", "."); err != nil {
			return err
		}
	}
	return nil
}

// refused returns an error unless err is the go command's about the marker, before it compiled.
func (c *consumer) refused(err error, next string) error {
	if err == nil {
		return errors.New("it succeeds: want it to fail for want of the marker")
	}
	lacks := "does not contain package " + c.w.Path + "/internal/lockstep/" + marker(c.version)
	if text := err.Error(); !strings.Contains(text, next) || !strings.Contains(text, lacks) || strings.Contains(text, "\n# ") {
		return fmt.Errorf("want %q with %q, and nothing compiled; it says\n%w", lacks, next, err)
	}
	return nil
}
