package main

import (
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strings"
	"time"
)

// features returns what a package exports, a line each, sorted: names of the package, fields of
// structs, methods. The names of parameters are left out, since no caller depends on them.
func features(pkg *types.Package) []string {
	l := &lister{pkg: pkg}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			l.constant(obj)
		case *types.Var:
			l.add("var %s %s", name, l.text(obj.Type()))
		case *types.Func:
			l.add("func %s%s", name, l.signature(obj.Signature()))
		case *types.TypeName:
			l.named(obj)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

type lister struct {
	pkg   *types.Package
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) constant(c *types.Const) {
	value, kind := c.Val().ExactString(), " "+l.text(c.Type())
	if n, exact := constant.Int64Val(constant.ToInt(c.Val())); exact && kind == " time.Duration" {
		value = time.Duration(n).String()
	}
	if b, ok := c.Type().(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		kind = ""
	}
	l.add("const %s%s = %s", c.Name(), kind, value)
}

func (l *lister) text(t types.Type) string { return types.TypeString(bare(t), l.qualify) }

func (l *lister) qualify(p *types.Package) string {
	if p == l.pkg {
		return ""
	}
	return p.Name()
}

func (l *lister) signature(s *types.Signature) string {
	return l.params(s.TypeParams()) + strings.TrimPrefix(l.text(s), "func")
}

func (l *lister) params(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+l.text(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (l *lister) named(obj *types.TypeName) {
	if obj.IsAlias() {
		l.add("type %s = %s", obj.Name(), l.text(types.Unalias(obj.Type())))
		return
	}
	t, ok := obj.Type().(*types.Named)
	if !ok {
		return
	}
	head := obj.Name() + l.params(t.TypeParams())
	switch u := t.Underlying().(type) {
	case *types.Interface:
		l.iface(obj.Name(), head, u)
		return
	case *types.Struct:
		l.add("type %s struct", head)
		l.fields(obj.Name(), u)
	default:
		l.add("type %s %s", head, l.text(u))
	}
	set := types.NewMethodSet(types.NewPointer(t))
	byValue := types.NewMethodSet(t)
	for m := range set.Methods() {
		if !m.Obj().Exported() {
			continue
		}
		receiver := "*" + obj.Name()
		if byValue.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
			receiver = obj.Name()
		}
		l.add("method (%s) %s%s", receiver, m.Obj().Name(), strings.TrimPrefix(l.text(m.Type()), "func"))
	}
}

// iface names all methods in the line of the type, so that this line changes when a method comes:
// types of others that have been one of these may then be none.
func (l *lister) iface(name, head string, t *types.Interface) {
	if !t.IsMethodSet() {
		l.add("type %s %s", head, l.text(t))
		return
	}
	var names []string
	hidden := false
	for m := range t.Methods() {
		if !m.Exported() {
			hidden = true // nobody else can implement it, so a method more breaks nobody
			continue
		}
		names = append(names, m.Name())
		l.add("method (%s) %s%s", name, m.Name(), strings.TrimPrefix(l.text(m.Type()), "func"))
	}
	if hidden {
		names = []string{"unexported methods"}
	}
	l.add("type %s interface { %s }", head, strings.Join(names, ", "))
}

func (l *lister) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case f.Embedded() && f.Exported():
			l.add("field %s, embedded %s", name, l.text(f.Type()))
		case f.Exported():
			l.add("field %s.%s %s", name, f.Name(), l.text(f.Type()))
		}
	}
}

// bare returns t without the names of parameters, where t is a function or made of one.
func bare(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, nameless(t.Params()), nameless(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(bare(t.Elem()))
	case *types.Slice:
		return types.NewSlice(bare(t.Elem()))
	case *types.Map:
		return types.NewMap(bare(t.Key()), bare(t.Elem()))
	}
	return t
}

func nameless(t *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range t.Variables() {
		all = append(all, types.NewParam(v.Pos(), v.Pkg(), "", bare(v.Type())))
	}
	return types.NewTuple(all...)
}
