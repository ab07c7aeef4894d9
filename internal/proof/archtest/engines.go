package archtest

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// EngineLimit is how many files outside its own folder may name an engine, so that adding one is a
// day's work: fewer than this.
const EngineLimit = 8

// Naming is who names an engine outside the engine's own folder.
type Naming struct {
	Engine string
	// Edited are the files that a person who adds an engine makes or edits: rolls, which name four
	// engines or more, and files of the engine's own in rooms, where four engines or more have one.
	Edited []string
	// All are Edited, and all other code and scripts that name the engine, for whatever reason.
	All []string
}

// several is how many engines make a list of them a roll, and a folder a room. The file and memory
// don't count: most tests have one of them. Who names fewer has chosen those, and a new engine is
// none of them.
const several = 4

// choices are files that name several engines, and that a new engine changes nothing in.
var choices = map[string]string{
	"cmd/leasehold/internal/cli/topics/text/fencing.txt": "help on guards, which are resources and no engines",
	"cmd/leasehold/mistakes_test.go":                     "examples of mistakes; store/open tries each scheme",
	"cmd/leasehold/open_process_linux_test.go":           "waiting for a store, by four engines; store/open tries each scheme",
	"internal/proof/servers/options_test.go":             "options that one server has; those of several are tried on all",
	"internal/proof/sim/cmd/report/main.go":              "prose of a page on the soak, which runs on three stores",
	"internal/proof/soak/resources/resources.go":         "resources that the soak guards, which are no engines",
}

// generated is how Go says that a program wrote a file.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Names returns who names the engines of the table. Not looked at are pages, examples, the texts of
// APIs, and what a program writes: go.mod and go.sum (scripts/tidy), and generated code. Comments
// name nobody.
func Names(fsys fs.FS, table []Row) ([]Naming, error) {
	var all []Naming
	for _, r := range table {
		if r.Engine {
			all = append(all, Naming{Engine: path.Base(strings.TrimSuffix(r.Dir, "/..."))})
		}
	}
	code := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && passed(name):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || written(path.Base(name)):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err == nil && !generated.Match(text) {
			code[name] = strings.ToLower(strip(name, text))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	count(all, code)
	return all, nil
}

// passed reports whether a folder has no code of ours.
func passed(dir string) bool {
	base := path.Base(dir)
	hidden := base[0] == '.' && dir != "." && base != ".ci" && base != ".github"
	return hidden || base == "node_modules" || slices.Contains([]string{"docs", "examples", "api"}, dir)
}

// written reports whether a file is a page, or written by a program.
func written(base string) bool {
	return slices.Contains([]string{".md", ".sum", ".png", ".gz", ".wasm"}, path.Ext(base)) || base == "go.mod" || base == "LICENSE"
}

// strip returns a file's text without comments.
func strip(name string, text []byte) string {
	var b strings.Builder
	if path.Ext(name) == ".go" {
		var s scanner.Scanner
		file := token.NewFileSet().AddFile(name, -1, len(text))
		s.Init(file, text, func(token.Position, string) {}, 0)
		for {
			_, tok, literal := s.Scan()
			if tok == token.EOF {
				return b.String()
			}
			b.WriteString(literal + " ")
		}
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// called is what engines are called, in lower case, where that isn't their names alone: schemes,
// and for common words the package and a word in quotation marks.
var called = map[string][]string{
	"file":       {`store/file"`, "store/file/", "store/file ", "store/file\n", `"file"`},
	"memory":     {`store/memory"`, "store/memory ", "store/memory\n", `"memory"`},
	"kubernetes": {"kubernetes", "k8s:", `"k8s"`},
	"zookeeper":  {"zookeeper", "zk:", `"zk"`},
}

// count sorts the files by the engines that they name.
func count(engines []Naming, code map[string]string) {
	named := map[string][]int{} // files, and the engines that they name
	owners := map[string]map[int]bool{}
	own := func(i int, name string) bool { // it is called after the engine
		word, _, _ := strings.Cut(path.Base(name), ".")
		word, _, _ = strings.Cut(word, "_")
		return word == engines[i].Engine
	}
	for i := range engines {
		names := called[engines[i].Engine]
		if names == nil {
			names = []string{engines[i].Engine}
		}
		says := func(text string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) })
		}
		for name, text := range code {
			if within(name, "store/"+engines[i].Engine) || !says(text) {
				continue
			}
			named[name] = append(named[name], i)
			if dir := path.Dir(name); own(i, name) {
				if owners[dir] == nil {
					owners[dir] = map[int]bool{}
				}
				owners[dir][i] = true
			}
		}
	}
	for name, those := range named {
		servers := 0
		for _, i := range those {
			if e := engines[i].Engine; e != "file" && e != "memory" {
				servers++
			}
		}
		roll := servers >= several && choices[name] == ""
		for _, i := range those {
			engines[i].All = append(engines[i].All, name)
			if roll || own(i, name) && len(owners[path.Dir(name)]) >= several {
				engines[i].Edited = append(engines[i].Edited, name)
			}
		}
	}
	for i := range engines {
		slices.Sort(engines[i].Edited)
		slices.Sort(engines[i].All)
	}
}
