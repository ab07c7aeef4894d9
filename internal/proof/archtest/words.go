package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// bannedList is where scripts/words has its list of banned phrases, which holds for the words of
// the code as well.
const bannedList = ".vale/styles/Leasehold/Banned.yml"

// shown is what users read beside Go: the page of the lock server, and the description of its API.
var shown = []string{"server/web/ui/*.js", "server/web/ui/*.html", "server/openapi.yaml"}

// Words returns where the code that users see breaks the rules of language: doc comments of what
// public packages export, and texts, which are help, errors, log lines and the server's page. Each
// Problem's Text is the phrase with some words around it, by which a baseline knows it wherever the
// code moves.
func Words(fsys fs.FS) ([]Problem, error) {
	list, err := fs.ReadFile(fsys, bannedList)
	if err != nil {
		return nil, err
	}
	banned, err := phrases(string(list))
	if err != nil {
		return nil, err
	}
	t, err := read(fsys)
	if err != nil {
		return nil, err
	}
	w := &words{banned: banned}
	for i := range t.files {
		f := &t.files[i]
		if f.test || within(f.dir, "internal/proof") || within(f.dir, "examples") {
			continue
		}
		w.texts(f)
		if public(f) {
			w.docs(f)
		}
	}
	for _, pattern := range shown {
		if err := w.lines(fsys, pattern); err != nil {
			return nil, err
		}
	}
	return w.found, nil
}

// phrases returns an expression for the tokens of a vale rule, each with some words before and
// after.
func phrases(rule string) (*regexp.Regexp, error) {
	_, list, ok := strings.Cut(rule, "\ntokens:\n")
	if !ok {
		return nil, fmt.Errorf("%s has no tokens", bannedList)
	}
	var all []string
	for line := range strings.Lines(list) {
		phrase, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			return nil, fmt.Errorf("%s: %q is no token", bannedList, line)
		}
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(phrase), " ", `\s+`))
	}
	return regexp.Compile(`(?i)(?:\S+\s+){0,3}\S*\b(?:` + strings.Join(all, "|") + `)\b\S*(?:\s+\S+){0,3}`)
}

type words struct {
	banned *regexp.Regexp
	found  []Problem
}

// lines looks at every line of the files that the pattern names, comments included.
func (w *words) lines(fsys fs.FS, pattern string) error {
	names, err := fs.Glob(fsys, pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, match := range w.banned.FindAllString(line, -1) {
				w.found = append(w.found, Problem{name, i + 1, strings.Join(strings.Fields(match), " ")})
			}
		}
	}
	return nil
}

func (w *words) look(f *file, n ast.Node, text string) {
	for _, match := range w.banned.FindAllString(text, -1) {
		w.found = append(w.found, Problem{f.path, f.line(n), strings.Join(strings.Fields(match), " ")})
	}
}

// texts looks at string literals, those that are joined by + as one.
func (w *words) texts(f *file) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			if text, ok := literal(n); ok {
				w.look(f, n, text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				w.look(f, n, text)
			}
		}
		return true
	})
}

// literal returns the text of a string literal, or of several with + between them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, e.Op == token.ADD && ok && also
	}
	return "", false
}

// docs looks at the package comment and the comments of what is exported.
func (w *words) docs(f *file) {
	w.comment(f, f.syntax.Doc)
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
				w.comment(f, d.Doc)
			}
		case *ast.GenDecl:
			if exported(d) {
				w.comment(f, d.Doc)
			}
			for _, s := range d.Specs {
				w.spec(f, s)
			}
		}
	}
}

func (w *words) spec(f *file, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		if s.Names[0].IsExported() {
			w.comment(f, s.Doc)
			w.comment(f, s.Comment)
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		w.comment(f, s.Doc)
		ast.Inspect(s.Type, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && (len(field.Names) == 0 || field.Names[0].IsExported()) {
				w.comment(f, field.Doc)
				w.comment(f, field.Comment)
			}
			return true
		})
	}
}

func (w *words) comment(f *file, c *ast.CommentGroup) {
	if c != nil {
		w.look(f, c, c.Text())
	}
}

func exportedReceiver(list *ast.FieldList) bool {
	t := list.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
