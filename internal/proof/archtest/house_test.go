package archtest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/leasehold/leasehold/internal/proof/archtest"
)

const root = "../../.."

func TestTheHouseStands(t *testing.T) {
	found, err := archtest.Check(os.DirFS(root), archtest.Table)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Error(p)
	}
}

func TestNoRequiredModuleForcesALaterGo(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Version}} {{.GoVersion}}", "all")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	for _, p := range archtest.Forcing(string(out)) {
		t.Error(p)
	}
}

// A build stays light only while nothing in it reaches the clients that it leaves out, by whatever way.
func TestLightBuildsLinkNoClientTheyLeaveOut(t *testing.T) {
	tagOf := clients(t)
	for _, build := range []struct {
		tags string
		has  []string // tags of the files that it has
		want int      // clients at least
	}{{"lite", []string{"", "local"}, 4}, {"lite,local", []string{""}, 1}} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", build.tags, "./cmd/leasehold")
		cmd.Dir, cmd.Stderr = root, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		linked := strings.Fields(string(out))
		has := 0
		for client, tag := range tagOf {
			if !slices.Contains(build.has, tag) {
				for _, path := range linked {
					if strings.HasPrefix(path, owner(client)+"/") {
						t.Errorf("with the tags %s the command links %s: say `//go:build !%s` where it is imported", build.tags, path, tag)
					}
				}
				continue
			}
			has++
			if !slices.ContainsFunc(linked, func(path string) bool { return strings.HasPrefix(path, client+"/") || path == client }) {
				t.Errorf("with the tags %s the command doesn't link %s: it has to open a store of that kind", build.tags, client)
			}
		}
		if has < build.want || len(tagOf)-has < 5 {
			t.Errorf("with the tags %s the command has %d clients of %v: this test sees too few", build.tags, has, tagOf)
		}
	}
}

// owner is the beginning of the paths of everything that a client's makers have made.
func owner(client string) string {
	host, rest, _ := strings.Cut(client, "/")
	if name, _, _ := strings.Cut(rest, "/"); host == "github.com" {
		host += "/" + name
	}
	return host
}

// A program that links the execution of templates may call any method by its name. So the linker keeps every exported method of all that
// it links: the full program was 75 MB instead of 55. cobra's use of it is dropped while nobody sets a template.
func TestTheCommandLinksNoTemplates(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "grpcnotrace", "-f", "{{.ImportPath}} {{.Imports}}", "./cmd/leasehold")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, of := range []string{"text/template", "html/template"} {
			if !slices.Contains(strings.Fields(strings.Trim(imports, "[]")), of) {
				continue
			}
			if seen++; path != "github.com/spf13/cobra" && path != "html/template" {
				t.Errorf("%s imports %s, which the command links: write the text with strings.NewReplacer or fmt", path, of)
			}
		}
	}
	if seen == 0 {
		t.Error("not even cobra imports text/template: this test sees nothing")
	}
}

// clients returns the libraries of engines, and for each the tag that leaves out the files of store/open that import its engine.
func clients(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "store/open/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	tags := make(map[string]string)
	for _, r := range archtest.Table {
		dir := strings.TrimSuffix(r.Dir, "/...")
		if !r.Engine {
			continue
		}
		at := slices.IndexFunc(r.Libs, func(lib string) bool { return lib != "golang.org/x" })
		if at < 0 {
			continue
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") || !bytes.Contains(text, []byte(`"`+archtest.Module+"/"+dir+`"`)) {
				continue
			}
			first, _, _ := strings.Cut(string(text), "\n")
			tag, tagged := strings.CutPrefix(first, "//go:build !")
			if !tagged {
				tag = ""
			}
			tags[r.Libs[at]] = tag
		}
	}
	return tags
}

// Code that made holds of its own would drive them in a way of its own, which the simulator doesn't run. So each way to make one is
// refused to each package that is above the driver and has holds, and let pass in the driver.
func TestFinding_S11_OnlyTheDriverMakesHolds(t *testing.T) {
	for _, dir := range []string{"lease", "internal/lessor", "internal/proof/sim", "internal/proof/sim/model"} {
		for _, by := range []string{"New", "NewSession", "Resume", "Named"} {
			if found := withHold(t, dir, by); len(found) != 1 || !strings.Contains(found[0].Text, "uses internal/protocol."+by) {
				t.Errorf("%s makes a hold by protocol.%s: %v, want one problem", dir, by, found)
			}
			if found := withHold(t, "internal/drive", by); len(found) != 0 {
				t.Errorf("the driver makes a hold by protocol.%s: %v", by, found)
			}
		}
	}
}

// withHold checks a sound tree with a file in dir that makes a hold.
func withHold(t *testing.T, dir, by string) []archtest.Problem {
	t.Helper()
	files := sound()
	delete(files, dir+"/lease.go")
	files[dir+"/made.go"] = source(archtest.Module+"/internal/protocol") + "\nvar h = protocol." + by + "()\n"
	return check(t, files)
}

func TestEachPublicPackageHasAnExample(t *testing.T) {
	missing, err := archtest.WithoutExample(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range missing {
		t.Errorf("%s has no Example: write one of at most 30 lines, which a user would type, in example_test.go", dir)
	}
}

func TestWithoutExample(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"lease/lease.go":        doc + "package lease\n\nfunc New() {}\n",
		"lease/lease_test.go":   "package lease\n\nfunc TestNew() {}\n",
		"lock/lock.go":          doc + "package lock\n\ntype Lock int\n",
		"lock/lock_test.go":     "package lock_test\n\nfunc ExampleLock() {}\n",
		"clock/clock.go":        doc + "package clock\n\nconst a, B = 1, 2\n",
		"doc.go":                doc + "package leasehold\n",
		"internal/drive/a.go":   doc + "package drive\n\nfunc New() {}\n",
		"examples/shop/shop.go": doc + "package shop\n\nfunc New() {}\n",
		"store/empty/a.go":      doc + "package empty\n\nfunc hidden() {}\n\nfunc (h kept) Shown() {}\n",
		"cmd/tool/main.go":      doc + "package main\n\nvar Version int\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if missing, err := archtest.WithoutExample(files); err != nil || !slices.Equal(missing, []string{"clock", "lease"}) {
		t.Errorf("%v, %v; want clock and lease", missing, err)
	}
}
