package archtest

import (
	"go/ast"
	"io/fs"
	"slices"
	"strings"
)

// WithoutExample returns the public packages that export something and have no Example to show how
// that is used.
func WithoutExample(fsys fs.FS) ([]string, error) {
	t, err := read(fsys)
	if err != nil {
		return nil, err
	}
	exports, shown := map[string]bool{}, map[string]bool{}
	for i := range t.files {
		f := &t.files[i]
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && strings.HasPrefix(fn.Name.Name, "Example") {
				shown[f.dir] = true
			}
			exports[f.dir] = exports[f.dir] || !f.test && public(f) && exported(d)
		}
	}
	var missing []string
	for dir, does := range exports {
		if does && !shown[dir] {
			missing = append(missing, dir)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// public reports whether others can import the package of a file.
func public(f *file) bool {
	return f.syntax.Name.Name != "main" && !strings.Contains("/"+f.dir+"/", "/internal/") && !within(f.dir, "examples")
}

func exported(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.IsExported()
	case *ast.GenDecl:
		return slices.ContainsFunc(d.Specs, func(s ast.Spec) bool {
			switch s := s.(type) {
			case *ast.TypeSpec:
				return s.Name.IsExported()
			case *ast.ValueSpec:
				return slices.ContainsFunc(s.Names, (*ast.Ident).IsExported)
			}
			return false
		})
	}
	return false
}
