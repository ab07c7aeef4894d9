package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVersionTyposAreRefused(t *testing.T) {
	for _, v := range []string{
		"", "v", "0.6.0", "v0.6", "v0", "V0.6.0", "v00.6.0", "v0.6.0 ", "v0.6.0+build", "v0.6.0-", "v2.0.0", "latest",
		"v0.0.0-20261124233138-f80bbbe29031",
	} {
		if err := checkVersion(v); err == nil {
			t.Errorf("version %q is taken", v)
		} else if !strings.Contains(err.Error(), `"`+v+`"`) {
			t.Errorf("the error about %q does not name it: %v", v, err)
		}
	}
	for _, v := range []string{"v0.6.0", "v1.0.0", "v0.6.0-rc.1", "v0.0.1-ci.7"} {
		if err := checkVersion(v); err != nil {
			t.Error(err)
		}
	}
}

func TestVersionsOrder(t *testing.T) {
	if got := last([]string{"v0.9.0", "v0.10.0", "v0.10.0-rc.1", "vnext", "v0.2"}); got != "v0.10.0" {
		t.Errorf("the last is %q: want v0.10.0", got)
	}
	if got := marker("v0.6.3-rc.1"); got != "v0_6" {
		t.Errorf("marker %q: want v0_6", got)
	}
	if patch, minor := bump("v0.6.9-ci.7"); patch != "v0.6.10-ci.7" || minor != "v0.7.0-ci.7" {
		t.Errorf("after v0.6.9-ci.7 come %s and %s", patch, minor)
	}
}

func TestChangelogIsCut(t *testing.T) {
	const head = "# Changelog\n\n## [Unreleased]\n"
	const old = "## [0.1.0] - 2026-01-01\n\n- First.\n"
	got, err := released(head+"\n### Added\n\n- A.\n\n"+old, "v0.2.0", "2026-11-24")
	must(t, err)
	if want := head + "\n## [0.2.0] - 2026-11-24\n\n### Added\n\n- A.\n\n" + old; got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	for _, empty := range []string{head, head + "\n" + old, head + "\n### Added\n\n" + old} {
		_, err := notes(empty)
		refuses(t, err, "CHANGELOG.md", "Unreleased", "write what users notice")
	}
	_, err = notes("# Changelog\n\n" + old)
	refuses(t, err, "CHANGELOG.md", "add it")
}

// TestReleaseIsConsumed makes a release, and builds and runs its command by the proxy alone.
func TestReleaseIsConsumed(t *testing.T) {
	r := found(t, nil)
	before, err := r.git("status", "--porcelain", "--branch")
	must(t, err)
	into, tree, said, err := made(t, r, "v0.1.0", nil)
	must(t, err)
	if after, err := r.git("status", "--porcelain", "--branch"); err != nil || after != before {
		t.Errorf("the checkout changed: %q, %v", after, err)
	}
	if tags, err := r.tags("*"); err != nil || len(tags) > 0 {
		t.Errorf("the checkout has tags %v, %v: want none", tags, err)
	}
	for _, tag := range []string{"git tag v0.1.0 ", "git tag cmd/tool/v0.1.0 ", "git tag store/engine/v0.1.0 ", "git tag fence/guard/v0.1.0 "} {
		if !strings.Contains(said, tag) {
			t.Errorf("it does not say %q:\n%s", tag, said)
		}
	}
	if strings.Contains(said, "proof") {
		t.Errorf("it tags what is not published:\n%s", said)
	}
	env := stranger(t, into)
	out, err := command(t.TempDir(), env, "go", "run", "example.com/core/cmd/tool@v0.1.0")
	must(t, err)
	if out != "page\n1 2" {
		t.Errorf("the command prints %q", out)
	}
	// The tree at the tag builds alone, by its go.sum, and as a workspace.
	_, err = command(filepath.Join(tree, "cmd", "tool"), append(env, "GOFLAGS=-mod=readonly"), "go", "build", "-o", os.DevNull, ".")
	must(t, err)
	_, err = command(tree, nil, "go", "build", "./...", "./cmd/tool", "./internal/proof")
	must(t, err)
	work, err := os.ReadFile(filepath.Join(tree, "go.work"))
	must(t, err)
	for _, line := range []string{"replace example.com/core v0.1.0 => ./\n", "replace example.com/core/store/engine v0.1.0 => ./store/engine\n"} {
		if !strings.Contains(string(work), line) {
			t.Errorf("go.work lacks %q:\n%s", line, work)
		}
	}
}

func TestTheSameBaseMakesTheSameTag(t *testing.T) {
	r := found(t, nil)
	into, _, _, err := made(t, r, "v0.1.0", nil)
	must(t, err)
	publish(t, r, into)
	if err := r.clean(); err != nil {
		t.Error(err)
	}
	again := func(o *order) { o.Again, o.Date = true, "2026-12-31" }
	second, _, said, err := made(t, r, "v0.1.0", again)
	must(t, err)
	if !strings.Contains(said, "tag v0.1.0 is what is made of its base") {
		t.Errorf("it says %q", said)
	}
	zip := filepath.Join("proxy", "example.com", "core", "cmd", "tool", "@v", "v0.1.0.zip")
	a, err := os.ReadFile(filepath.Join(into, zip))
	must(t, err)
	b, err := os.ReadFile(filepath.Join(second, zip))
	must(t, err)
	if !bytes.Equal(a, b) {
		t.Error("two releases of one base have two zips")
	}
	// A tag on a commit that somebody changed by hand is noticed.
	_, err = r.git("checkout", "--quiet", "v0.1.0")
	must(t, err)
	must(t, write(r, map[string]string{"core.go": "package core\n"}))
	_, err = r.git("commit", "--quiet", "--all", "--amend", "--no-edit")
	must(t, err)
	_, err = r.git("tag", "--force", "v0.1.0")
	must(t, err)
	_, _, _, err = made(t, r, "v0.1.0", again)
	refuses(t, err, "tag v0.1.0", "not made by scripts/release")
}

func TestWhatCantBeReleased(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes map[string]string
		says    []string
	}{
		{"a forgotten sibling", map[string]string{"cmd/tool/go.mod": "module example.com/core/cmd/tool\n\ngo 1.26.0\n\nrequire example.com/core v0.0.0\n"}, []string{"cmd/tool/go.mod", "example.com/core/store/engine is missing", "scripts/tidy"}},
		{"a sibling that is not published", map[string]string{"cmd/tool/go.mod": world["cmd/tool/go.mod"] + "\nrequire example.com/core/internal/proof v0.0.0\n"}, []string{"cmd/tool/go.mod", "example.com/core/internal/proof", "not published"}},
		{"a sibling at another version", map[string]string{"fence/guard/go.mod": strings.Replace(world["fence/guard/go.mod"], "v0.0.0", "v0.1.0", 1)}, []string{"fence/guard/go.mod", "v0.1.0", "want v0.0.0"}},
		{"a replace line", map[string]string{"fence/guard/go.mod": world["fence/guard/go.mod"] + "\nreplace example.com/core => ../..\n"}, []string{"fence/guard/go.mod", "replace example.com/core", "remove it"}},
		{"no marker", map[string]string{"store/engine/engine.go": strings.Replace(world["store/engine/engine.go"], "\t_ \"example.com/core/internal/lockstep/dev\"\n", "", 1)}, []string{"store/engine", "does not import example.com/core/internal/lockstep/dev", "lockstep.go"}},
		{"no doc", map[string]string{"fence/guard/guard.go": strings.Replace(world["fence/guard/guard.go"], "// Package guard guards.\n", "", 1)}, []string{"fence/guard", "README.md"}},
		{"an empty changelog", map[string]string{"CHANGELOG.md": "## [Unreleased]\n"}, []string{"CHANGELOG.md"}},
		{"no license", map[string]string{"LICENSE": ""}, []string{"LICENSE"}},
		{"a file that zips leave out", map[string]string{"store/engine/web/vendor/a/b.js": "js\n"}, []string{"web/vendor/a/b.js", "move it"}},
		{"a file that archives leave out", map[string]string{".gitattributes": "page.html export-ignore\n"}, []string{"web/page.html", "move it"}},
		{"a circle", map[string]string{"store/engine/go.mod": world["store/engine/go.mod"] + "\nrequire example.com/core/cmd/tool v0.0.0\n"}, []string{"requires itself"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, err := made(t, found(t, c.changes), "v0.1.0", nil)
			refuses(t, err, c.says...)
		})
	}
}

func TestWhenNothingIsReleased(t *testing.T) {
	r := found(t, nil)
	_, _, _, err := made(t, r, "v0.1", nil)
	refuses(t, err, `"v0.1"`, "want vMAJOR.MINOR.PATCH")
	_, _, _, err = made(t, r, "v0.1.0", func(o *order) { o.Into = string(r) })
	refuses(t, err, "--into "+string(r), "not empty")
	_, err = r.git("tag", "v0.2.0")
	must(t, err)
	for _, v := range []string{"v0.1.9", "v0.2.0", "v0.2.0-rc.1"} {
		_, _, _, err = made(t, r, v, nil)
		refuses(t, err, v, "v0.2.0", "take a higher one")
	}
	must(t, write(r, map[string]string{"new.txt": "new"}))
	_, _, _, err = made(t, r, "v0.3.0", nil)
	refuses(t, err, "new.txt", "commit that")
	if _, _, _, err := made(t, r, "v0.0.1-ci.1", func(o *order) { o.Rehearse = true }); err != nil {
		t.Errorf("a rehearsal is not to mind: %v", err)
	}
}

// TestSkewFailsBeforeItCompiles mixes two minor versions, and two patches of one.
func TestSkewFailsBeforeItCompiles(t *testing.T) {
	r := found(t, nil)
	var intos []string
	for _, v := range []string{"v0.1.0", "v0.1.1", "v0.2.0"} {
		into, _, _, err := made(t, r, v, func(o *order) { o.Rehearse = true })
		must(t, err)
		intos = append(intos, into)
	}
	env := stranger(t, intos...)
	dir := t.TempDir()
	must(t, write(repo(dir), map[string]string{
		"go.mod": "module example.org/mine\n\ngo 1.26.0\n",
		"a.go":   "package mine\n\nimport (\n\t_ \"example.com/core/fence/guard\"\n\t_ \"example.com/core/store/engine\"\n)\n",
	}))
	goes := func(args ...string) error {
		_, err := command(dir, env, "go", args...)
		return err
	}
	must(t, goes("get", "example.com/core/store/engine@v0.1.0", "example.com/core/fence/guard@v0.1.0"))
	must(t, goes("build"))
	must(t, goes("get", "example.com/core@v0.1.1"))
	must(t, goes("build")) // the engine is at v0.1.0
	// Whoever asks for the core alone hears of it when the program is built, and who names the engine
	// hears of it at once.
	const lacks = "does not contain package example.com/core/internal/lockstep/v0_1"
	for _, get := range [][]string{{"example.com/core@v0.2.0"}, {"example.com/core/fence/guard@v0.2.0"}} {
		must(t, goes(append([]string{"mod", "edit"}, "-require="+get[0])...))
		for _, verb := range [][]string{{"build"}, {"mod", "tidy"}, {"vet"}} {
			err := goes(verb...)
			refuses(t, err, "v0.2.0", lacks)
			if strings.Contains(err.Error(), "\n# ") {
				t.Errorf("it compiles first:\n%v", err)
			}
		}
		_, err := command(dir, append(env, "GOFLAGS=-modcacherw"), "go", "build")
		refuses(t, err, "store/engine@v0.1.0", "no required module provides package example.com/core/internal/lockstep/v0_1")
		if strings.Contains(err.Error(), "\n# ") {
			t.Errorf("it compiles first:\n%v", err)
		}
		must(t, goes("get", "example.com/core@v0.1.1", "example.com/core/fence/guard@v0.1.0"))
	}
	must(t, goes("get", "example.com/core/fence/guard@v0.1.0", "example.com/core/store/engine@v0.2.0"))
	must(t, goes("build")) // guards need not move
}

func TestSumsNoticeEveryChange(t *testing.T) {
	dir := t.TempDir()
	must(t, write(repo(dir), map[string]string{"a": "a", "b/c": "c"}))
	must(t, writeSums(dir))
	must(t, checkSums(dir))
	must(t, write(repo(dir), map[string]string{"a": "A"}))
	refuses(t, checkSums(dir), "a: its SHA-256")
	must(t, write(repo(dir), map[string]string{"a": "a", "d": "d"}))
	refuses(t, checkSums(dir), "d: it is not in SHA256SUMS")
	must(t, write(repo(dir), map[string]string{"d": "", "b/c": ""}))
	refuses(t, checkSums(dir), "b/c: it is in SHA256SUMS and not")
}

// TestModulesAreListed keeps the table of docs/releasing.md.
func TestModulesAreListed(t *testing.T) {
	w, err := load(filepath.Join("..", ".."))
	must(t, err)
	must(t, w.check())
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "releasing.md"))
	must(t, err)
	if !strings.Contains(string(text), table(w)) {
		t.Errorf("docs/releasing.md has not this table, which `go run ./internal/release modules` prints:\n%s", table(w))
	}
	for _, dir := range []string{".", "server", "cmd/leasehold", "store/open", "store/file"} {
		if i := slices.IndexFunc(w.Modules, func(m *Module) bool { return m.Dir == dir }); i < 0 || !w.Modules[i].Published {
			t.Errorf("%s is not published", dir)
		}
	}
}
