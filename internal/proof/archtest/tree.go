package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// file is one Go file of the tree.
type file struct {
	path    string
	dir     string // its package's, from the root
	test    bool
	text    []byte
	lines   int
	set     *token.FileSet
	syntax  *ast.File
	imports []imported
}

type imported struct {
	path string
	name string // under which the file knows it
	line int
}

// tree is what the rules are applied to.
type tree struct {
	files []file
	mods  map[string][]byte // go.mod files by folder
	work  []byte            // go.work
}

// recipe is the folder in an engine's that builds the server which tests run against. If that is a
// module, it is outside the workspace: nobody imports it, and what it requires and replaces is what
// the server was released with.
const recipe = "store/*/testserver"

// packaging is a module outside the workspace, too: it makes packages out of the program, and its
// libraries want a later Go.
const packaging = "internal/packaging"

// printed is one more: it holds what the command prints for Prometheus and Terraform to the
// libraries of those, which nobody else may get.
const printed = "internal/proof/rules"

// read reads every Go file of the workspace, whatever it is built for, and its module files.
func read(fsys fs.FS) (*tree, error) {
	t := &tree{mods: map[string][]byte{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			made, _ := path.Match(recipe, name)
			if made || name == packaging || name == printed || name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		case base != "go.mod" && name != "go.work" && !strings.HasSuffix(base, ".go"):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		switch base {
		case "go.mod":
			t.mods[path.Dir(name)] = text
			return nil
		case "go.work":
			t.work = text
			return nil
		}
		f, err := parse(name, text)
		t.files = append(t.files, f)
		return err
	})
	return t, err
}

func parse(name string, text []byte) (file, error) {
	f := file{
		path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), text: text,
		lines: bytes.Count(text, []byte("\n")), set: token.NewFileSet(),
	}
	var err error
	f.syntax, err = parser.ParseFile(f.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		i := imported{path: p, name: path.Base(p), line: f.line(spec)}
		if spec.Name != nil {
			i.name = spec.Name.Name
		}
		f.imports = append(f.imports, i)
	}
	return f, nil
}

func (f *file) line(n ast.Node) int { return f.set.Position(n.Pos()).Line }

// module returns the folder of the module that dir belongs to.
func (t *tree) module(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := t.mods[dir]; ok {
			return dir
		}
	}
	return "."
}
