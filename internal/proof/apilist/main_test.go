package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

func parsed(t *testing.T, source string) []string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", "package p\n"+source, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("example.org/p", set, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return features(pkg)
}

func TestFeatures(t *testing.T) {
	const source = `
const Untyped = 3
const untold = 4
type Kind string
const Typed Kind = "a"
var Err error
func F(ctx Reader, names ...string) (n int, err error) { return 0, nil }
func G[T ~[]E, E comparable](list T, first func(e E) bool) {}
func hidden() {}
type Reader interface { Read(p []byte) (n int, err error); Close() }
type Sealed interface { Open(); seal() }
type Number interface { ~int | ~string }
type Alias = map[string]Kind
type base struct{}
func (base) Promoted() {}
type Kept struct { base; Reader; Name string; f func(a int); Hook func(a int) (b *Kept) }
func (k *Kept) Run(now bool) {}
func (k Kept) String() string { return "" }
func (k *Kept) stop() {}
type Box[T any] struct { Value T }
func (b *Box[T]) Put(v T) {}
`
	want := `const Typed Kind = "a"
const Untyped = 3
field Box.Value T
field Kept, embedded Reader
field Kept.Hook func(int) *Kept
field Kept.Name string
func F(Reader, ...string) (int, error)
func G[T ~[]E, E comparable](T, func(E) bool)
method (*Box) Put(T)
method (*Kept) Run(bool)
method (Kept) Close()
method (Kept) Promoted()
method (Kept) Read([]byte) (int, error)
method (Kept) String() string
method (Reader) Close()
method (Reader) Read([]byte) (int, error)
method (Sealed) Open()
type Alias = map[string]Kind
type Box[T any] struct
type Kept struct
type Kind string
type Number interface{~int | ~string}
type Reader interface { Close, Read }
type Sealed interface { unexported methods }
var Err error`
	got := parsed(t, source)
	for _, line := range without(got, strings.Split(want, "\n")) {
		t.Errorf("listed, but not wanted: %s", line)
	}
	for _, line := range without(strings.Split(want, "\n"), got) {
		t.Errorf("wanted, but not listed: %s", line)
	}
	if !slices.IsSorted(got) {
		t.Errorf("not sorted: %q", got)
	}
}

// A line that goes breaks programs, a line that only comes does not.
func TestCompare(t *testing.T) {
	before := map[string][]string{"store": {"func A()", "func B()"}, "lock": {"func L()"}}
	for _, c := range []struct {
		name      string
		now       map[string][]string
		out, fail string
	}{
		{"same", before, "", ""},
		{"more", map[string][]string{"store": {"func A()", "func B()", "func C()"}, "lock": {"func L()"}}, "store: + func C()\n", "grows by 1"},
		{"changed", map[string][]string{"store": {"func A()", "func B(int)"}, "lock": {"func L()"}}, "store: - func B()\nstore: + func B(int)\n", "incompatibly"},
		{"package gone", map[string][]string{"store": {"func A()", "func B()"}}, "lock: - func L()\n", "incompatibly"},
		{"package new", map[string][]string{"store": {"func A()", "func B()"}, "lock": {"func L()"}, "gate": {"func G()"}}, "gate: + func G()\n", "grows by 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := compare(&out, before, c.now)
			if out.String() != c.out {
				t.Errorf("prints %q, want %q", out.String(), c.out)
			}
			if (err != nil) != (c.fail != "") || err != nil && !(strings.Contains(err.Error(), c.fail) && strings.Contains(err.Error(), "scripts/api")) {
				t.Errorf("error %v, want one with %q", err, c.fail)
			}
		})
	}
}

func TestWrittenListsAreReadBack(t *testing.T) {
	folder := t.TempDir() + "/api"
	all := map[string][]string{"store": {"func A()"}, "store/etcd": {"func Open()", "type T struct"}}
	if err := write(folder, map[string][]string{"gone": {"func Old()"}}); err != nil {
		t.Fatal(err)
	}
	if err := write(folder, all); err != nil {
		t.Fatal(err)
	}
	got, err := read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(t.Output(), all, got); err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	table(&out, map[string]*sides{
		"store": {names: [2]int{57, 40}, lines: [2]int{120, 93}},
		"clock": {names: [2]int{0, 9}, lines: [2]int{0, 49}},
	})
	const want = `| package | names then | now | lines of go doc then | now |
|---|---:|---:|---:|---:|
| \x60clock\x60 | – | 9 | – | 49 |
| \x60store\x60 | 57 | 40 | 120 | 93 |
| all | 57 | 49 | 120 | 142 |
| the longest | | | 120 | 93 |
`
	if got := strings.ReplaceAll(out.String(), "`", `\x60`); got != want {
		t.Errorf("prints\n%s\nwant\n%s", got, want)
	}
}

func TestArgumentsThatAreWrong(t *testing.T) {
	for _, args := range [][]string{{"beside"}, {"check", "store"}, {"counts"}} {
		if err := run(t.Context(), "../../..", args, t.Output()); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: error %v, want one that says what to type", args, err)
		}
	}
	if err := beside(t.Context(), t.Output(), t.TempDir(), ".", nil, []string{"admiral"}); err == nil || !strings.Contains(err.Error(), `"admiral": want OLD=NEW`) {
		t.Errorf("error %v, want one that says OLD=NEW", err)
	}
}

func TestRenamed(t *testing.T) {
	called := map[string]string{"admiral": "compat/admiral", "store/dynamodb/neighbour": "store/dynamodb/dynamotables", "admiral/own": "own"}
	for from, want := range map[string]string{
		"admiral": "compat/admiral", "admiral/configmap": "compat/admiral/configmap", "admiral/own/x": "own/x", "admirals": "admirals",
		"store/dynamodb": "store/dynamodb", "store/dynamodb/neighbour/interop": "store/dynamodb/dynamotables/interop", ".": ".",
	} {
		if got := renamed(from, called); got != want {
			t.Errorf("%s is called %s, want %s", from, got, want)
		}
	}
}
