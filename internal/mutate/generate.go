package mutate

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// Mutant is one change of one function, made by rote.
type Mutant struct {
	Name string // to switch it on by
	File string
	Func string
	Line int
	What string // the change, as text: it names the mutant as long as its function doesn't change

	variant variant
}

// flips are operators, and what becomes of them.
var flips = map[token.Token][]string{
	token.LSS: {"<="}, token.LEQ: {"<"}, token.GTR: {">="}, token.GEQ: {">"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
}

// generate returns the mutants of every function of a file.
func (s *source) generate() []Mutant {
	var all []Mutant
	for _, d := range s.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Name.Name == "init" || fn.Name.Name == "main" || fn.Name.Name == "_" {
			continue
		}
		g := &generator{source: s, fn: fn, seen: map[change]bool{}}
		g.results(fn.Type, fn.Body)
		ast.Inspect(fn.Body, g.visit)
		all = append(all, g.out...)
	}
	return all
}

type generator struct {
	*source
	fn    *ast.FuncDecl
	seen  map[change]bool
	whole map[ast.Expr]bool // conditions that are negated as a whole
	out   []Mutant
}

// add adds the mutant in which text is in the place of a node.
func (g *generator) add(n ast.Node, text string) {
	c := change{g.at(n.Pos()), g.at(n.End()), text}
	if g.seen[c] {
		return
	}
	g.seen[c] = true
	what := fmt.Sprintf("%s → %s", short(g.of(n)), short(text))
	if text == "" {
		what = "without " + short(g.of(n))
	}
	g.out = append(g.out, Mutant{
		File: g.path, Func: nameOf(g.fn), Line: g.fset.Position(n.Pos()).Line, What: what,
		variant: variant{fn: g.fn, changes: []change{c}},
	})
}

// short returns a text in one line, of a length for a table.
func short(text string) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > 70 {
		r = append(r[:69], '…')
	}
	return "`" + strings.ReplaceAll(string(r), "`", "'") + "`"
}

func (g *generator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		g.results(n.Type, n.Body)
	case *ast.IfStmt:
		g.negate(n.Cond)
	case *ast.BlockStmt:
		g.drop(n.List)
	case *ast.CaseClause:
		if n.List != nil {
			g.add(n, "")
		}
		g.drop(n.Body)
	case *ast.CommClause:
		g.drop(n.Body)
	case ast.Expr:
		g.expression(n)
	}
	return true
}

func (g *generator) expression(n ast.Expr) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		g.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT && !g.whole[n] {
			g.add(n, g.of(n.X))
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "min" || id.Name == "max") {
			g.add(id, map[string]string{"min": "max", "max": "min"}[id.Name])
		}
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			g.add(n, strconv.FormatBool(n.Name == "false"))
		}
	case *ast.BasicLit:
		if i, err := strconv.ParseInt(n.Value, 0, 32); n.Kind == token.INT && err == nil {
			g.add(n, fmt.Sprint(i+1))
		}
	}
}

func (g *generator) negate(cond ast.Expr) {
	if g.whole == nil {
		g.whole = map[ast.Expr]bool{}
	}
	g.whole[cond] = true
	g.add(cond, "!("+g.of(cond)+")")
}

func (g *generator) binary(n *ast.BinaryExpr) {
	x, y := g.of(n.X), g.of(n.Y)
	for _, op := range flips[n.Op] {
		if (n.Op == token.EQL || n.Op == token.NEQ) && g.whole[n] {
			continue
		}
		g.add(n, g.text[g.at(n.Pos()):g.at(n.OpPos)]+op+g.text[g.at(n.OpPos)+len(n.Op.String()):g.at(n.End())])
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		g.add(n, x)
		g.add(n, y)
	}
}

// drop makes the mutants that lack one statement.
func (g *generator) drop(list []ast.Stmt) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
			g.add(st, "")
		case *ast.AssignStmt:
			if st.Tok != token.DEFINE {
				g.add(st, "")
			}
		}
	}
}

// results makes the mutants that return no error, or the opposite.
func (g *generator) results(t *ast.FuncType, body *ast.BlockStmt) {
	if t.Results == nil {
		return
	}
	fields := t.Results.List
	last, ok := fields[len(fields)-1].Type.(*ast.Ident)
	if !ok {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // its results are its own
		case *ast.ReturnStmt:
			if len(n.Results) != t.Results.NumFields() {
				return true
			}
			switch r := n.Results[len(n.Results)-1]; {
			case last.Name == "error" && g.of(r) != "nil":
				g.add(r, "nil")
			case last.Name == "bool" && g.of(r) != "true" && g.of(r) != "false":
				g.negate(r)
			}
		}
		return true
	})
}
