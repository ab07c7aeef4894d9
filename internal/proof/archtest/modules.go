package archtest

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// goDirective is the Go version that go.mod files ask for. A later one would be forced on every
// importer.
const goDirective = "1.26.0"

func trimModule(importPath string) string { return strings.TrimPrefix(importPath, Module+"/") }

// modules sees that each go.mod asks of its importers no more than it has to, and that the
// workspace knows every module.
func (j *judge) modules() {
	used := map[string]bool{}
	for _, d := range directives(j.tree.work) {
		if d.verb == "use" && len(d.args) == 1 {
			used[path.Clean(d.args[0])] = true
		}
	}
	for dir, text := range j.tree.mods {
		name := path.Join(dir, "go.mod")
		if !used[dir] {
			j.report(name, 0, "go.work does not use this module, so its siblings are not found: add `use ./%s`", dir)
		}
		j.goMod(name, text)
	}
	for dir := range used {
		if _, ok := j.tree.mods[dir]; !ok {
			j.report("go.work", 0, "uses %s, where there is no go.mod", dir)
		}
	}
}

func (j *judge) goMod(name string, text []byte) {
	asked := ""
	for _, d := range directives(text) {
		switch d.verb {
		case "go":
			asked = strings.Join(d.args, " ")
		case "replace":
			j.report(name, d.line, "has a replace line: it would not count for importers; siblings are replaced in go.work")
		case "toolchain":
			j.report(name, d.line, "has a toolchain line: go %s is all that we ask for", goDirective)
		}
	}
	if asked != goDirective {
		j.report(name, 0, "go %s: want go %s, so that no importer is forced to a later one", asked, goDirective)
	}
}

// directive is one line of a module file, with the verb of its block.
type directive struct {
	verb string
	args []string
	line int
}

// directives reads a go.mod or go.work file. Comments are left out.
func directives(text []byte) []directive {
	var all []directive
	block := ""
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == ")":
			block = ""
		case block != "":
			all = append(all, directive{block, words, i + 1})
		case slices.Contains(words, "("):
			block = words[0]
		default:
			all = append(all, directive{words[0], words[1:], i + 1})
		}
	}
	return all
}

// Forcing returns a problem for each required module whose own go directive is later than ours. Its
// input is what `go list -m -f '{{.Path}} {{.Version}} {{.GoVersion}}' all` prints.
func Forcing(listed string) []Problem {
	var found []Problem
	for line := range strings.Lines(listed) {
		words := strings.Fields(line)
		if len(words) == 3 && later(words[2], goDirective) {
			found = append(found, Problem{Path: "go.mod", Text: fmt.Sprintf(
				"%s %s asks for go %s, later than our %s: take an older version, or do without", words[0], words[1], words[2], goDirective)})
		}
	}
	return found
}

// later reports whether Go version a is later than b, by their numbers; a missing one is 0, and a
// release candidate counts as its release.
func later(a, b string) bool {
	as, bs := numbers(a), numbers(b)
	for len(as) < len(bs) {
		as = append(as, 0)
	}
	for len(bs) < len(as) {
		bs = append(bs, 0)
	}
	return slices.Compare(as, bs) > 0
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		if i := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
			part = part[:i]
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return all
		}
		all = append(all, n)
	}
	return all
}
