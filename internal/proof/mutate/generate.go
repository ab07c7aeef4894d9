package mutate

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
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
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
}

// spared are functions that aren't mutated: those that can't be replaced, and those that make text
// for people.
var spared = map[string]bool{"init": true, "main": true, "_": true, "String": true, "GoString": true, "Error": true, "LogValue": true}

// wording finds calls that make the text of an error or a line of a log. What is in them is not
// mutated.
var wording = regexp.MustCompile(`^(fmt\.Errorf|errors\.New|(.*\.)?(log|Log|logger|slog)\.?(Debug|Info|Warn|Error|Log|With)?(Context|Attrs)?)$`)

// generate returns the mutants of every function of a file.
func (s *source) generate() []Mutant {
	var all []Mutant
	for _, d := range s.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || spared[fn.Name.Name] {
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
	fn   *ast.FuncDecl
	seen map[change]bool
	// Expressions that aren't negated or counted up: another mutant tells as much.
	plain map[ast.Expr]bool
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
	case *ast.CallExpr:
		if wording.MatchString(g.of(n.Fun)) {
			return false
		}
		g.expression(n)
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
		if n.Op == token.NOT && !g.plain[n] {
			g.add(n, g.of(n.X))
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "min" || id.Name == "max") {
			g.add(id, map[string]string{"min": "max", "max": "min"}[id.Name])
		}
	case *ast.Ident:
		if (n.Name == "true" || n.Name == "false") && !g.plain[n] {
			g.add(n, strconv.FormatBool(n.Name == "false"))
		}
	case *ast.BasicLit:
		if i, err := strconv.ParseInt(n.Value, 0, 32); n.Kind == token.INT && err == nil && !g.plain[n] {
			g.add(n, fmt.Sprint(i+1))
		}
	}
}

func (g *generator) negate(cond ast.Expr) {
	g.spare(cond)
	g.add(cond, "!("+g.of(cond)+")")
}

func (g *generator) binary(n *ast.BinaryExpr) {
	for _, op := range flips[n.Op] {
		if (n.Op == token.EQL || n.Op == token.NEQ) && g.plain[n] {
			continue
		}
		g.add(n, g.text[g.at(n.Pos()):g.at(n.OpPos)]+op+g.text[g.at(n.OpPos)+len(n.Op.String()):g.at(n.End())])
	}
	if n.Op != token.LAND && n.Op != token.LOR {
		return
	}
	// Without each operand of a && b && c. A test that notices that notices b negated, and || in
	// the place of &&.
	g.add(n, g.of(n.X))
	if x, ok := ast.Unparen(n.X).(*ast.BinaryExpr); !ok || x.Op != n.Op {
		g.add(n, g.of(n.Y))
	}
	g.spare(n.X, n.Y)
}

// spare has expressions not negated.
func (g *generator) spare(all ...ast.Expr) {
	if g.plain == nil {
		g.plain = map[ast.Expr]bool{}
	}
	for _, e := range all {
		g.plain[e] = true
	}
}

// drop makes the mutants that lack one statement.
func (g *generator) drop(list []ast.Stmt) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.ExprStmt:
			if call, ok := st.X.(*ast.CallExpr); !ok || !wording.MatchString(g.of(call.Fun)) {
				g.add(st, "")
			}
		case *ast.IncDecStmt, *ast.DeferStmt:
			g.add(st, "")
		case *ast.AssignStmt:
			if st.Tok != token.DEFINE {
				g.add(st, "")
				g.spare(st.Rhs...) // its opposite
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
				g.spare(n.Results...) // nobody reads what is beside an error
			case last.Name == "bool" && g.of(r) != "true" && g.of(r) != "false":
				g.negate(r)
			}
		}
		return true
	})
}
