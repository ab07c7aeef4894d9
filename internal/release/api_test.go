package main

import (
	"maps"
	"strings"
	"testing"
)

// TestWhatAVersionMustNotContain releases v0.1.0, changes the workspace, and asks for versions.
func TestWhatAVersionMustNotContain(t *testing.T) {
	const broken = "CHANGELOG.md"
	said := "# Changelog\n\n## [Unreleased]\n\n### Changed, incompatibly\n\n- One.\n"
	rules := func(text string) map[string]string {
		return map[string]string{"internal/rules/rules.go": "// Package rules decides.\npackage rules\n\n" + text}
	}
	core := func(text string) map[string]string {
		return map[string]string{"core.go": "// Package core is the core.\npackage core\n\n" + text}
	}
	with := func(a map[string]string, name, text string) map[string]string {
		a = maps.Clone(a)
		a[name] = text
		return a
	}
	const one = "// One is 1.\nfunc One() int { return 1 }\n"
	for _, c := range []struct {
		name    string
		changes map[string]string
		patch   string // what the error says, or "" where the version may come
		minor   string
	}{
		{"a fix", core("// One is one.\nfunc One() int { return 0 + 1 }\n"), "", ""},
		{"shared internals grow", rules("// Two is 2.\nfunc Two() int { return 2 }\n\n// Three is 3.\nfunc Three() int { return 3 }\n"), "", ""},
		{"shared internals shrink", with(rules("// Deux is 2.\nfunc Deux() int { return 2 }\n"), "store/engine/engine.go", strings.Replace(world["store/engine/engine.go"], "rules.Two", "rules.Deux", 1)), "internal/rules: incompatible: Two: removed", ""},
		{"the API grows", core(one + "\n// Two is 2.\nfunc Two() int { return 2 }\n"), "Two: added\n  a patch brings nothing to rely on: release v0.2.0", ""},
		{"the API breaks", with(core("// One is 1.\nfunc One() int64 { return 1 }\n"), "cmd/tool/main.go", strings.Replace(world["cmd/tool/main.go"], "core.One()", "int(core.One())", 1)), "One: changed from func() int to func() int64", "say so in CHANGELOG.md"},
		{"the API breaks, as is said", with(core("// One is 1.\nfunc One() int64 { return 1 }\n"), broken, said), "One: changed", ""},
		{"what guards use breaks", map[string]string{broken: said, "fence/fence.go": "// Package fence has tokens.\npackage fence\n\n// Token is a number.\ntype Token string\n"}, "Token: changed", "guards of an earlier minor version"},
		{"another Go", map[string]string{"fence/guard/go.mod": strings.Replace(world["fence/guard/go.mod"], "1.26.0", "1.26.1", 1), "go.work": strings.Replace(world["go.work"], "go 1.26.0", "go 1.26.1", 1)}, "go 1.26.0 is go 1.26.1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := found(t, nil)
			into, _, _, err := made(t, r, "v0.1.0", nil)
			must(t, err)
			publish(t, r, into)
			must(t, write(r, map[string]string{"CHANGELOG.md": world["CHANGELOG.md"]}))
			must(t, write(r, c.changes))
			commit(t, r)
			for version, says := range map[string]string{"v0.1.1": c.patch, "v0.2.0": c.minor} {
				_, _, _, err := made(t, r, version, nil)
				if says == "" {
					if err != nil {
						t.Errorf("%s: %v", version, err)
					}
					continue
				}
				refuses(t, err, version, "v0.1.0", says)
			}
		})
	}
}

func TestV1KeepsItsAPI(t *testing.T) {
	gone := []Change{{"example.com/core", Public, "One: removed", false}}
	if found := forbidden("v1.0.0", "v1.1.0", gone, "### Removed"); len(found) != 1 {
		t.Errorf("v1.1.0 may lose what v1.0.0 had: %v", found)
	}
	if found := forbidden("v0.9.0", "v1.0.0", gone, "### Removed"); len(found) != 0 {
		t.Errorf("v1.0.0 may not lose what v0.9.0 had: %v", found)
	}
}
