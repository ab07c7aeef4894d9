package server

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// The places where an object appears.
const (
	onBoth    = "the command and HTTP"
	onHTTP    = "HTTP"
	onCommand = "the command"
)

// object is a type of package api that is written as a JSON object.
type object struct {
	of reflect.Type
	on string
}

// objects are all of them, as docs/json.md has them.
var objects = []object{
	{reflect.TypeFor[api.Lease](), onBoth},
	{reflect.TypeFor[api.Share](), onBoth},
	{reflect.TypeFor[api.Term](), onBoth},
	{reflect.TypeFor[api.Turn](), onBoth},
	{reflect.TypeFor[api.Pause](), onBoth},
	{reflect.TypeFor[api.Candidate](), onBoth},
	{reflect.TypeFor[api.LeaderState](), onCommand},
	{reflect.TypeFor[api.Change](), onCommand},
	{reflect.TypeFor[api.Verification](), onBoth},
	{reflect.TypeFor[api.Grant](), onHTTP},
	{reflect.TypeFor[api.Session](), onHTTP},
	{reflect.TypeFor[api.Loss](), onHTTP},
	{reflect.TypeFor[api.DeclaredPool](), onBoth},
	{reflect.TypeFor[api.Identity](), onBoth},
	{reflect.TypeFor[api.Assigned](), onBoth},
	{reflect.TypeFor[api.Identities](), onHTTP},
	{reflect.TypeFor[api.FreedValue](), onCommand},
	{reflect.TypeFor[api.SharedValue](), onCommand},
	{reflect.TypeFor[api.IDs](), onHTTP},
	{reflect.TypeFor[api.SweepFinding](), onCommand},
	{reflect.TypeFor[api.ShardSpace](), onBoth},
	{reflect.TypeFor[api.ShardPlacement](), onBoth},
	{reflect.TypeFor[api.ShardPin](), onBoth},
	{reflect.TypeFor[api.ShardSpaces](), onHTTP},
	{reflect.TypeFor[api.ShardStatus](), onBoth},
	{reflect.TypeFor[api.ShardWorker](), onBoth},
	{reflect.TypeFor[api.ShardSlice](), onBoth},
	{reflect.TypeFor[api.ShardHistory](), onHTTP},
	{reflect.TypeFor[api.ShardChange](), onBoth},
	{reflect.TypeFor[api.ShardHolding](), onHTTP},
	{reflect.TypeFor[api.ShardPart](), onHTTP},
	{reflect.TypeFor[api.List](), onHTTP},
	{reflect.TypeFor[api.History](), onHTTP},
	{reflect.TypeFor[api.Journal](), onHTTP},
	{reflect.TypeFor[api.Span](), onBoth},
	{reflect.TypeFor[api.Waiters](), onHTTP},
	{reflect.TypeFor[api.Waiter](), onHTTP},
	{reflect.TypeFor[api.Event](), onHTTP},
	{reflect.TypeFor[api.SessionEvent](), onHTTP},
	{reflect.TypeFor[api.Freshness](), onHTTP},
	{reflect.TypeFor[api.Problem](), onBoth},
	{reflect.TypeFor[api.Pair](), onBoth},
	{reflect.TypeFor[api.Instance](), onBoth},
	{reflect.TypeFor[api.PairChange](), onBoth},
	{reflect.TypeFor[api.Pairs](), onHTTP},
	{reflect.TypeFor[api.Whoami](), onHTTP},
	{reflect.TypeFor[api.Logins](), onHTTP},
	{reflect.TypeFor[api.Login](), onHTTP},
	{reflect.TypeFor[api.Store](), onHTTP},
	{reflect.TypeFor[api.RecordLine](), onHTTP},
	{reflect.TypeFor[api.AcquireRequest](), onHTTP},
	{reflect.TypeFor[api.RenewRequest](), onHTTP},
	{reflect.TypeFor[api.BreakRequest](), onHTTP},
	{reflect.TypeFor[api.HandoffRequest](), onHTTP},
	{reflect.TypeFor[api.PauseRequest](), onHTTP},
	{reflect.TypeFor[api.ResumeRequest](), onHTTP},
	{reflect.TypeFor[api.SwitchoverRequest](), onHTTP},
	{reflect.TypeFor[api.HoldRequest](), onHTTP},
	{reflect.TypeFor[api.SessionRequest](), onHTTP},
	{reflect.TypeFor[api.SessionRenewal](), onHTTP},
	{reflect.TypeFor[api.VerifyRequest](), onHTTP},
	{reflect.TypeFor[api.IdentityRequest](), onHTTP},
	{reflect.TypeFor[api.PoolRequest](), onHTTP},
	{reflect.TypeFor[api.ShardMoveRequest](), onHTTP},
	{reflect.TypeFor[api.ShardDrainRequest](), onHTTP},
	{reflect.TypeFor[api.ShardSplitRequest](), onHTTP},
	{reflect.TypeFor[api.ShardMergeRequest](), onHTTP},
	{reflect.TypeFor[api.ShardJoinRequest](), onHTTP},
	{reflect.TypeFor[api.ShardStepRequest](), onHTTP},
}

// member is a field of an object.
type member struct {
	name     string
	of       reflect.Type // no pointer
	required bool
	on       string // "command" or "http" for one that only that one has; else ""
	in       reflect.Type
	field    string // in Go
}

// membersOf returns the fields of a type, with those of what is embedded in it.
func membersOf(of reflect.Type) (all []member) {
	for f := range of.Fields() {
		if f.Anonymous {
			all = append(all, membersOf(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		m := member{name: name, of: f.Type, required: !strings.Contains(options, "omit"), on: f.Tag.Get("on"), in: of, field: f.Name}
		if m.of.Kind() == reflect.Pointer {
			m.of = m.of.Elem()
		}
		all = append(all, m)
	}
	return all
}

// source is what the source of package api says of its types.
type source struct {
	docs   map[string]string            // of types
	fields map[string]map[string]string // what is said of the fields of each, by their Go names
	values map[string][]string          // of types that are texts: their constants
}

// sourceOf reads the source of package api.
func sourceOf(t *testing.T) source {
	t.Helper()
	s := source{docs: map[string]string{}, fields: map[string]map[string]string{}, values: map[string][]string{}}
	files, err := filepath.Glob("../internal/api/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					s.note(d, spec)
				}
			}
		}
	}
	return s
}

func (s source) note(d *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		s.docs[spec.Name.Name] = d.Doc.Text()
		if object, ok := spec.Type.(*ast.StructType); ok {
			s.noteFields(spec.Name.Name, object)
		}
	case *ast.ValueSpec:
		of, typed := spec.Type.(*ast.Ident)
		for _, v := range spec.Values {
			if text, ok := v.(*ast.BasicLit); ok && typed && text.Kind == token.STRING {
				value, _ := strconv.Unquote(text.Value) // it compiles
				s.values[of.Name] = append(s.values[of.Name], value)
			}
		}
	}
}

func (s source) noteFields(name string, object *ast.StructType) {
	s.fields[name] = map[string]string{}
	for _, f := range object.Fields.List {
		text := f.Doc.Text()
		if f.Comment != nil {
			text = f.Comment.Text()
		}
		for _, n := range f.Names {
			s.fields[name][n.Name] = strings.Join(strings.Fields(text), " ")
		}
	}
}

// valuesOf returns what a field may be, or nothing if it may be any text.
func (s source) valuesOf(m member) []string {
	switch {
	case m.of == reflect.TypeFor[store.Kind]() && m.in == reflect.TypeFor[api.Lease]():
		return []string{string(store.KindRW), string(store.KindSemaphore), string(store.KindElection), string(store.KindPool)}
	case m.in == reflect.TypeFor[api.Whoami]() && m.name == "may":
		var all []string
		for _, a := range Actions() {
			all = append(all, string(a))
		}
		return all
	case strings.HasSuffix(m.of.PkgPath(), "internal/api"):
		return s.values[m.of.Name()]
	}
	return nil
}

// Every object of the package is in the table, and every field of it is explained.
func TestEveryObjectIsDescribed(t *testing.T) {
	s := sourceOf(t)
	for name := range s.fields {
		if !slices.ContainsFunc(objects, func(o object) bool { return o.of.Name() == name }) {
			t.Errorf("the type %s is not among the objects", name)
		}
	}
	for _, o := range objects {
		for _, m := range membersOf(o.of) {
			if m.name == "" || s.fields[m.in.Name()][m.field] == "" {
				t.Errorf("%s.%s: want a name in JSON, and a comment that says what it is", m.in.Name(), m.field)
			}
		}
	}
}

// The description has a schema for each object that is sent over HTTP, with its fields, and no others.
func TestDescribedObjects(t *testing.T) {
	d, s := describe(t), sourceOf(t)
	sent := map[string]bool{}
	for _, o := range objects {
		if o.on != onCommand {
			sent[o.of.Name()] = true
			d.object(t, s, o)
		}
	}
	for name, of := range d.Components.Schemas {
		if isObject := of["properties"] != nil || of["allOf"] != nil; isObject && !sent[name] {
			t.Errorf("the schema %s has no type in package api", name)
		}
	}
}

func (d description) object(t *testing.T, s source, o object) {
	of, ok := d.Components.Schemas[o.of.Name()]
	if !ok {
		t.Errorf("%s has no schema", o.of.Name())
		return
	}
	described, required := d.properties(of)
	if isRequest := strings.HasSuffix(o.of.Name(), "Request") || o.of == reflect.TypeFor[api.SessionRenewal](); isRequest != (of["additionalProperties"] == false) {
		t.Errorf("%s: a request, and nothing else, refuses fields that it doesn't know", o.of.Name())
	}
	for _, m := range membersOf(o.of) {
		p, ok := described[m.name]
		delete(described, m.name)
		where := o.of.Name() + "." + m.name
		switch {
		case m.on == "command":
			if ok {
				t.Errorf("%s: only the command has it", where)
			}
			continue
		case !ok:
			t.Errorf("%s is not described", where)
			continue
		case m.required != slices.Contains(required, m.name):
			t.Errorf("%s: required is %v, want %v", where, !m.required, m.required)
		}
		if err := d.fits(p, m.of, s.valuesOf(m)); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	for name := range described {
		t.Errorf("%s.%s is described, and there is no such field", o.of.Name(), name)
	}
}

// resolved follows a reference.
func (d description) resolved(of map[string]any) map[string]any {
	for {
		ref, ok := of["$ref"].(string)
		if !ok {
			return of
		}
		of = d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	}
}

// properties returns the fields that a schema describes, and which of them are required.
func (d description) properties(of map[string]any) (fields map[string]map[string]any, required []string) {
	fields = map[string]map[string]any{}
	of = d.resolved(of)
	own, _ := of["properties"].(map[string]any)
	for name, p := range own {
		fields[name], _ = p.(map[string]any)
	}
	names, _ := of["required"].([]any)
	for _, n := range names {
		required = append(required, fmt.Sprint(n))
	}
	parts, _ := of["allOf"].([]any)
	for _, part := range parts {
		part, _ := part.(map[string]any)
		more, needed := d.properties(part)
		for name, p := range more {
			fields[name] = p
		}
		required = append(required, needed...)
	}
	return fields, required
}

// fits returns why a schema isn't that of a Go type whose values are those, if there are any.
func (d description) fits(p map[string]any, of reflect.Type, values []string) error {
	if name, ok := strings.CutPrefix(fmt.Sprint(p["$ref"]), "#/components/schemas/"); ok && isObject(of) && name != of.Name() {
		return fmt.Errorf("it refers to %s, want %s", name, of.Name())
	}
	is := d.resolved(p)
	if want := jsonType(of); !slices.Contains(d.types(is), want) {
		return fmt.Errorf("described as %v, want %s", d.types(is), want)
	}
	switch {
	case isObject(of) && p["$ref"] == nil:
		return fmt.Errorf("want a reference to %s", of.Name())
	case of == reflect.TypeFor[time.Time]() && is["format"] != "date-time":
		return fmt.Errorf("format %v, want date-time", is["format"])
	case of == reflect.TypeFor[fence.Token]() && d.token(p)["maximum"] != fence.MaxToken:
		return fmt.Errorf("maximum %v of a token, want %v", d.token(p)["maximum"], fence.MaxToken)
	case jsonType(of) == "array":
		items, _ := is["items"].(map[string]any)
		return d.fits(items, of.Elem(), values)
	case of.Kind() == reflect.Map:
		items, _ := is["additionalProperties"].(map[string]any)
		return d.fits(items, of.Elem(), nil)
	}
	var described []string
	all, _ := is["enum"].([]any)
	for _, v := range all {
		described = append(described, fmt.Sprint(v))
	}
	if slices.Sort(described); !slices.Equal(described, slices.Sorted(slices.Values(values))) {
		return fmt.Errorf("enum %q, want %q", described, values)
	}
	return nil
}

// token returns the schema of a token within one that may be null, too.
func (d description) token(p map[string]any) map[string]any {
	choices, _ := p["anyOf"].([]any)
	for _, c := range choices {
		if c, _ := c.(map[string]any); c["$ref"] != nil {
			return d.token(c)
		}
	}
	is := d.resolved(p)
	if n, ok := is["maximum"].(int); ok {
		return map[string]any{"maximum": fence.Token(n)}
	}
	return is
}

// types returns what JSON types a schema allows.
func (d description) types(of map[string]any) (all []string) {
	switch is := of["type"].(type) {
	case string:
		all = append(all, is)
	case []any:
		for _, one := range is {
			all = append(all, fmt.Sprint(one))
		}
	}
	choices, _ := of["anyOf"].([]any)
	for _, c := range choices {
		c, _ := c.(map[string]any)
		all = append(all, d.types(d.resolved(c))...)
	}
	if of["allOf"] != nil {
		all = append(all, "object")
	}
	return all
}

// isObject reports whether a type is an object of package api.
func isObject(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && strings.HasSuffix(of.PkgPath(), "internal/api")
}

// jsonType returns what a type is in JSON.
func jsonType(of reflect.Type) string {
	switch {
	case of == reflect.TypeFor[api.Seconds]():
		return "number"
	case of == reflect.TypeFor[json.RawMessage]():
		return "object"
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}
