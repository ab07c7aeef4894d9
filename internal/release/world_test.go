package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is a workspace of five modules under git: a core, an engine that uses its internals, a guard
// that uses package fence alone, a command, and a proof that is not published.
var world = map[string]string{
	"go.mod":       "module example.com/core\n\ngo 1.26.0\n",
	"go.work":      "go 1.26.0\n\nuse (\n\t.\n\t./cmd/tool\n\t./fence/guard\n\t./internal/proof\n\t./store/engine\n)\n\nreplace (\n\texample.com/core v0.0.0 => ./\n\texample.com/core/store/engine v0.0.0 => ./store/engine\n)\n",
	"LICENSE":      "free\n",
	"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- All.\n",
	"core.go":      "// Package core is the core.\npackage core\n\n// One is 1.\nfunc One() int { return 1 }\n",

	"fence/fence.go":                 "// Package fence has tokens.\npackage fence\n\n// Token is a number.\ntype Token int\n",
	"internal/rules/rules.go":        "// Package rules decides.\npackage rules\n\n// Two is 2.\nfunc Two() int { return 2 }\n",
	"internal/lockstep/dev/dev.go":   "// Package lockstep has no code.\npackage lockstep\n",
	"store/engine/go.mod":            "module example.com/core/store/engine\n\ngo 1.26.0\n\nrequire example.com/core v0.0.0\n",
	"store/engine/engine.go":         "// Package engine keeps.\npackage engine\n\nimport (\n\t_ \"embed\"\n\n\t_ \"example.com/core/internal/lockstep/dev\"\n\t\"example.com/core/internal/rules\"\n)\n\n//go:embed web/page.html\nvar page string\n\n// Page is a page.\nfunc Page() (string, int) { return page, rules.Two() }\n",
	"store/engine/web/page.html":     "page\n",
	"store/engine/testdata/a.txt":    "a\n",
	"fence/guard/go.mod":             "module example.com/core/fence/guard\n\ngo 1.26.0\n\nrequire example.com/core v0.0.0\n",
	"fence/guard/guard.go":           "// Package guard guards.\npackage guard\n\nimport \"example.com/core/fence\"\n\n// Mark is a mark.\nvar Mark fence.Token\n",
	"internal/proof/go.mod":          "module example.com/core/internal/proof\n\ngo 1.26.0\n\nrequire example.com/core v0.0.0\n",
	"internal/proof/proof.go":        "// Package proof proves.\npackage proof\n\nimport _ \"example.com/core\"\n",
	"cmd/tool/go.mod":                "module example.com/core/cmd/tool\n\ngo 1.26.0\n\nrequire (\n\texample.com/core v0.0.0\n\texample.com/core/store/engine v0.0.0\n)\n",
	"cmd/tool/main.go":               "// Command tool prints a page.\npackage main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/core\"\n\t_ \"example.com/core/internal/lockstep/dev\"\n\t\"example.com/core/store/engine\"\n)\n\nfunc main() {\n\tpage, two := engine.Page()\n\tfmt.Print(page, core.One(), two)\n}\n",
	"internal/proof/testdata/go.txt": "not a module\n",
}

// found is the world as a checkout, with what the test changes; "" takes a file out.
func found(t *testing.T, changes map[string]string) repo {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "GOFLAGS": "", "GOWORK": "", "GOPROXY": "off",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.com",
		"GIT_AUTHOR_DATE": "2026-11-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-11-01T00:00:00Z",
	} {
		t.Setenv(name, value)
	}
	r := repo(t.TempDir())
	must(t, write(r, world))
	must(t, write(r, changes))
	_, err := r.git("init", "--quiet", "--initial-branch=main")
	must(t, err)
	commit(t, r)
	return r
}

func write(r repo, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(string(r), filepath.FromSlash(name))
		if text == "" {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func commit(t *testing.T, r repo) {
	t.Helper()
	_, err := r.git("add", "--all")
	must(t, err)
	_, err = r.git("commit", "--quiet", "--message", "change")
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is the release of the version, its folder and its tree.
func made(t *testing.T, r repo, version string, change func(*order)) (into, tree, said string, err error) {
	t.Helper()
	var out bytes.Buffer
	top := t.TempDir()
	o := order{Repo: r, Version: version, Into: filepath.Join(top, "release"), Tree: filepath.Join(top, "tree"), Date: "2026-11-24", Out: &out}
	if change != nil {
		change(&o)
	}
	err = o.make()
	return o.Into, o.Tree, out.String(), err
}

// refuses fails the test unless err says all that it should.
func refuses(t *testing.T, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it succeeds: want an error with %q", says)
	}
	for _, say := range says {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("the error lacks %q:\n%v", say, err)
		}
	}
}

// publish does on the checkout what publish.txt says, but for the pushes.
func publish(t *testing.T, r repo, into string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(into, "publish.txt"))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 && words[1] != "push" {
			_, err := r.git(words[1:]...)
			must(t, err)
		}
	}
}

// stranger is the environment of the go command outside of the workspace, with these proxies.
func stranger(t *testing.T, intos ...string) []string {
	t.Helper()
	merged := proxy(t.TempDir())
	for _, into := range intos {
		must(t, merged.merge(proxy(filepath.Join(into, "proxy"))))
	}
	return []string{
		"GOPROXY=file://" + string(merged) + ",off", "GONOSUMDB=example.com", "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw",
		"GOMODCACHE=" + t.TempDir(),
	}
}
