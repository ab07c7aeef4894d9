package archtest_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/leasehold/leasehold/internal/proof/archtest"
)

const (
	goMod = "module m\n\ngo 1.26.0\n"
	doc   = "// Package p is documented.\n"
)

const recipe = "store/etcd/testserver"

// sound is a small tree in which nothing is wrong.
func sound() map[string]string {
	return map[string]string{
		"go.work":                           "go 1.26.0\n\nuse (\n\t.\n\t./cmd/leasehold\n\t./store/file\n)\n",
		"cmd/leasehold/go.mod":              goMod,
		"go.mod":                            goMod,
		"store/file/go.mod":                 goMod + "\nrequire " + archtest.Module + " v0.0.0 // indirect\n",
		"clock/clock.go":                    source("golang.org/x/sys/unix", "time"),
		"fence/fence.go":                    source("errors"),
		"fence/fencehttp/fence.go":          source("net/http", archtest.Module+"/fence"),
		"store/store.go":                    source(archtest.Module+"/fence", "context"),
		"store/memory/memory.go":            source(archtest.Module+"/store", archtest.Module+"/clock", "sync"),
		"store/memory/a_test.go":            source("go.uber.org/goleak", archtest.Module+"/store/storetest"),
		"store/storetest/suite.go":          source(archtest.Module+"/store/faulty", "pgregory.net/rapid"),
		"store/faulty/faulty.go":            source(archtest.Module + "/store"),
		"store/file/file.go":                source("modernc.org/sqlite/lib", archtest.Module+"/store"),
		"internal/protocol/rules.go":        source("time", archtest.Module+"/clock"),
		"internal/protocol/a_test.go":       source("context", "pgregory.net/rapid"),
		"lease/lease.go":                    source(archtest.Module+"/internal/protocol", "context", archtest.Module+"/clock"),
		"lease/lease_test.go":               source(archtest.Module + "/store/memory"),
		"compat/rdlm/rdlm.go":               source(archtest.Module+"/lease", "net/http"),
		"server/server.go":                  source(archtest.Module+"/server/web", archtest.Module+"/compat/rdlm"),
		"server/web/web.go":                 source("html/template"),
		"cmd/leasehold/main.go":             source(archtest.Module+"/store/file", archtest.Module+"/lease", "github.com/spf13/cobra"),
		"internal/proof/soak/main.go":       source(archtest.Module + "/store/file"),
		"store/testdata/broken.go":          "this is not Go",
		"store/.hidden/broken.go":           "nor is this",
		"internal/proof/testreport/a.go":    source("encoding/json"),
		"internal/proof/servers/servers.go": source("testing"),
		"internal/proof/servers/cmd/x/a.go": source(archtest.Module + "/internal/proof/servers"),
		recipe + "/go.mod":                  "module r\n\ngo 1.27\n\nreplace a => b v1.0.0\n",
		recipe + "/main.go":                 "package main\n",
	}
}

// source is a file that imports the given packages.
func source(imports ...string) string {
	var b strings.Builder
	b.WriteString(doc + "package p\n\nimport (\n")
	for _, i := range imports {
		fmt.Fprintf(&b, "\t%q\n", i)
	}
	return b.String() + ")\n"
}

func check(t *testing.T, files map[string]string) []archtest.Problem {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	found, err := archtest.Check(fsys, archtest.Table)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestASoundTreeHasNoProblem(t *testing.T) {
	for _, p := range check(t, sound()) {
		t.Error(p)
	}
}

// TestEachRuleIsHeld breaks one rule at a time in a tree that is otherwise sound, and wants that one problem.
func TestEachRuleIsHeld(t *testing.T) {
	own := func(p string) string { return source(archtest.Module + "/" + p) }
	body := func(n int) string { return strings.Repeat("\n", n) }
	for _, c := range []struct {
		name, path, text string
		want             string // the whole beginning of the problem
		why              string // a part of the reason
	}{
		{"ground floor imports an engine's floor", "store/store.go", own("store/memory"), "store/store.go:5: imports", "chooses an engine"},
		{"store imports clock", "store/store.go", own("clock"), "store/store.go:5: imports", "lower floors only: store is on F0, clock on F0"},
		{"fence imports a library", "fence/fence.go", source("golang.org/x/sys/unix"), "fence/fence.go:5: imports", "does not list"},
		{"fence imports store", "fence/fence.go", own("store"), "fence/fence.go:5: imports", "links fence and nothing else"},
		{"a guard imports store", "fence/fencehttp/fence.go", own("store"), "fence/fencehttp/fence.go:5: imports", "no store and no lease"},
		{"a guard imports a guard", "fence/fencehttp/fence.go", own("fence/fencesql"), "fence/fencehttp/fence.go:5: imports", "its own client"},
		{"engine imports engine", "store/file/file.go", own("store/memory"), "store/file/file.go:5: imports", "engines never import each other"},
		{"engine's test imports engine", "store/memory/a_test.go", own("store/file"), "store/memory/a_test.go:5: imports", "engines never import each other"},
		{"engine imports lease", "store/file/file.go", own("lease"), "store/file/file.go:5: imports", "must not know"},
		{"engine's test imports the rules", "store/file/a_test.go", own("internal/protocol"), "store/file/a_test.go:5: imports", "must not know"},
		{"engine imports the rules", "store/file/file.go", own("internal/protocol"), "store/file/file.go:5: imports", "must not know"},
		{"engine imports its test suite", "store/file/file.go", own("store/storetest"), "store/file/file.go:5: imports", "made for tests"},
		{"engine takes a second library", "store/file/file.go", source("github.com/jackc/pgx/v5"), "store/file/file.go:5: imports", "does not list"},
		{"library that only begins like a listed one", "store/file/file.go", source("modernc.org/sqlite2"), "store/file/file.go:5: imports", "does not list"},
		{"root module takes a library", "lease/lease.go", source("go.uber.org/zap"), "lease/lease.go:5: imports", "does not list"},
		{"root module takes a test library", "lease/lease.go", source("go.uber.org/goleak"), "lease/lease.go:5: imports", "does not list"},
		{"test takes a library", "lease/lease_test.go", source("github.com/stretchr/testify/assert"), "lease/lease_test.go:5: imports", "does not list"},
		{"rules import lease", "internal/protocol/rules.go", own("lease"), "internal/protocol/rules.go:5: imports", "only cmp"},
		{"rules import context", "internal/protocol/rules.go", source("context"), "internal/protocol/rules.go:5: imports", "pure"},
		{"rules import sync", "internal/protocol/rules.go", source("sync"), "internal/protocol/rules.go:5: imports", "pure"},
		{"rules import math/rand", "internal/protocol/rules.go", source("math/rand/v2"), "internal/protocol/rules.go:5: imports", "pure"},
		{"rules import os", "internal/protocol/rules.go", source("os"), "internal/protocol/rules.go:5: imports", "pure"},
		{"rules import net", "internal/protocol/rules.go", source("net"), "internal/protocol/rules.go:5: imports", "pure"},
		{"lease imports what is above", "lease/lease.go", own("server/web"), "lease/lease.go:5: imports", "lower floors only: lease is on F2, server/web on F4"},
		{"lease imports an engine", "lease/lease.go", own("store/memory"), "lease/lease.go:5: imports", "take a store.Store"},
		{"lease's test imports another engine", "lease/lease_test.go", own("store/file"), "lease/lease_test.go:5: imports", "take a store.Store"},
		{"server imports an engine", "server/web/web.go", own("store/file"), "server/web/web.go:5: imports", "take a store.Store"},
		{"someone imports the command", "server/web/web.go", own("cmd/leasehold"), "server/web/web.go:5: imports", "lower floors only"},
		{"command imports a proof", "cmd/leasehold/main.go", own("internal/proof/soak"), "cmd/leasehold/main.go:5: imports", "lower floors only"},
		{"the judge imports the house", "internal/proof/testreport/a.go", own("clock"), "internal/proof/testreport/a.go:5: imports", "stands outside"},
		{"new package", "novel/novel.go", source("fmt"), "novel: this package is on no floor", "internal/proof/archtest/table.go"},
		{"new package with a test only", "novel/novel_test.go", source("fmt"), "novel: this package is on no floor", "internal/proof/archtest/table.go"},
		{"import of a package that is on no floor", "lease/lease.go", own("novel"), "lease/lease.go:5: imports", "give it a row"},
		{"no package comment", "lease/lease.go", "package lease\n", "lease: no file of this package has a package comment", "doc.go"},
		{"long file", "lease/lease.go", doc + "package p\n" + body(399), "lease/lease.go: 401 lines", "one idea a file"},
		{"long function", "lease/lease.go", doc + "package p\n\nfunc F() {" + body(70) + "}\n", "lease/lease.go:4: function F has 71 lines", "70 at most"},
		{"replace line", "store/file/go.mod", goMod + "\nreplace a => ../b\n", "store/file/go.mod:5: has a replace line", "go.work"},
		{"replace block", "store/file/go.mod", goMod + "\nreplace (\n\ta => ../b\n)\n", "store/file/go.mod:6: has a replace line", "go.work"},
		{"toolchain line", "go.mod", goMod + "\ntoolchain go1.26.8\n", "go.mod:5: has a toolchain line", "all that we ask for"},
		{"later go directive", "go.mod", "module m\n\ngo 1.26.8\n", "go.mod: go 1.26.8: want go 1.26.0", "forced"},
		{"no go directive", "go.mod", "module m\n", "go.mod: go : want go 1.26.0", "forced"},
		{"module outside the workspace", "client/go.mod", goMod, "client/go.mod: go.work does not use this module", "./client"},
		{"workspace uses what is not there", "go.work", "use ./cmd/leasehold\nuse (\n./store/file // the engine\n.\n./client\n)\n", "go.work: uses client", "no go.mod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(sound())
			files[c.path] = c.text
			found := check(t, files)
			if len(found) != 1 {
				t.Fatalf("got %v, want one problem", found)
			}
			if s := found[0].String(); !strings.HasPrefix(s, c.want) || !strings.Contains(s, c.why) {
				t.Errorf("got  %s\nwant %s … %s", s, c.want, c.why)
			}
		})
	}
}

func TestRootModuleNeedsNoLibrary(t *testing.T) {
	files := sound()
	delete(files, "cmd/leasehold/go.mod") // so the command belongs to the root module
	files["go.work"] = "use (\n.\n./store/file\n)\n"
	found := check(t, files)
	if len(found) != 1 || !strings.Contains(found[0].Text, "imports github.com/spf13/cobra: the root module needs nothing") {
		t.Errorf("got %v, want that cobra is none of the root module's", found)
	}
}

func TestRulesUseNoClock(t *testing.T) {
	for _, use := range []string{
		"time.Now()", "time.Since(t)", "time.NewTimer(d)", "time.AfterFunc(d, f)", "time.Sleep(d)", "time.Now /* passed on */",
		"clock.System()", "clock.Sleep(ctx, c, d)", "store.Wait(ctx, s, k, v)",
	} {
		pkg, _, _ := strings.Cut(use, ".")
		imported := pkg
		if pkg != "time" {
			imported = archtest.Module + "/" + pkg
		}
		files := sound()
		files["internal/protocol/rules.go"] = source(imported) + "\nvar v = " + use + "\n"
		if found := check(t, files); len(found) != 1 || !strings.Contains(found[0].Text, "uses "+pkg+".") {
			t.Errorf("%s: got %v, want one problem", use, found)
		}
	}
	for why, text := range map[string]string{
		"another name":   doc + "package p\n\nimport clk \"time\"\n\nvar v = clk.Now()\n",
		"with a dot":     doc + "package p\n\nimport . \"time\"\n\nvar v = Now()\n",
		"in one of many": doc + "package p\n\nimport \"time\"\n\nvar u = time.Second\nvar v = time.Now()\n",
	} {
		files := sound()
		files["internal/protocol/rules.go"] = text
		if found := check(t, files); len(found) != 1 {
			t.Errorf("%s: got %v, want one problem", why, found)
		}
	}
	files := sound()
	files["internal/protocol/rules.go"] = source("time") + "\nvar v = time.Second\n"
	files["internal/protocol/rules_test.go"] = source("time") + "\nvar w = time.Now()\n"
	if found := check(t, files); len(found) != 0 {
		t.Errorf("got %v, want none: a duration is no clock, and tests may look at one", found)
	}
}

func TestATreeThatDoesNotParseIsAnError(t *testing.T) {
	fsys := fstest.MapFS{"lease/lease.go": {Data: []byte("package {")}}
	if found, err := archtest.Check(fsys, archtest.Table); err == nil {
		t.Errorf("got %v, want an error", found)
	}
}

func TestForcing(t *testing.T) {
	for listed, want := range map[string]int{
		"m v1.0.0 1.26.0": 0, "m v1.0.0 1.26": 0, "m v1.0.0 1.9": 0, "m v1.0.0 ": 0, "m  1.27": 0,
		"m v1.0.0 1.26.1": 1, "m v1.0.0 1.27": 1, "m v1.0.0 1.27rc1": 1, "m v1.0.0 2": 1, "m v1.0.0 1.27\nn v1.0.0 1.28": 2,
	} {
		if found := archtest.Forcing(listed); len(found) != want {
			t.Errorf("%q: got %v, want %d problems", listed, found, want)
		}
	}
}
