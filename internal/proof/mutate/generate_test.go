package mutate

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

import "errors"

type box[T any] struct{ all []T }

func (b *box[T]) put(_ string, more ...T) {
	b.all = append(b.all, more...)
}

func pick(int, string) (n int, err error) {
	if n > 3 && err == nil {
		n = max(n, 7)
	}
	switch {
	case n < 0:
		return 0, errors.New("below")
	}
	return n, err
}
`

// What rote makes of a function.
func TestGenerate(t *testing.T) {
	s, err := parse("sample.go", sample)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.generate() {
		got = append(got, m.Func+": "+strings.ReplaceAll(m.What, "`", ""))
	}
	for _, want := range []string{
		"box.put: without b.all = append(b.all, more...)",
		"pick: n > 3 && err == nil → !(n > 3 && err == nil)",
		"pick: n > 3 && err == nil → n > 3",
		"pick: n > 3 → n >= 3",
		"pick: n > 3 && err == nil → err == nil",
		"pick: max → min",
		"pick: 7 → 8",
		"pick: without n = max(n, 7)",
		`pick: without case n < 0: return 0, errors.New("below")`,
		`pick: errors.New("below") → nil`,
		"pick: err → nil",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("not made: %s", want)
		}
	}
	for _, unwanted := range []string{
		"pick: n > 3 && err == nil → n > 3 || err == nil", "pick: err == nil → err != nil", "pick: 0 → 1 (2)", "pick: \"below\" → \"\"",
	} {
		if slices.Contains(got, unwanted) {
			t.Errorf("made, though another tells as much: %s", unwanted)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

// A rewritten file can be parsed, its lines keep their numbers, and each function with mutants calls them with its own arguments.
func TestRewrite(t *testing.T) {
	s, err := parse("sample.go", sample)
	if err != nil {
		t.Fatal(err)
	}
	var variants []variant
	for i, m := range s.generate() {
		m.variant.mutant = "m-" + string(rune('a'+i))
		variants = append(variants, m.variant)
	}
	text, spans := s.rewrite(variants)
	if _, err := parser.ParseFile(token.NewFileSet(), "sample.go", text, 0); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	before, after := strings.Split(sample, "\n"), strings.Split(text, "\n")
	for i, line := range before[:len(before)-1] {
		if after[i] != line && !strings.Contains(after[i], "seeded__") {
			t.Errorf("line %d: %q, was %q", i+1, after[i], line)
		}
	}
	for _, want := range []string{
		`case "m-a": b.put__m_a(p__1, more...); return; `,
		"func pick(p__1 int, p__2 string) (n int, err error) { switch",
		`return pick__m_c(p__1, p__2)`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
	for _, sp := range spans {
		if !strings.Contains(after[sp.from-1], suffix(sp.mutant)+"(") || after[sp.to-1] != "}" {
			t.Errorf("%s is not in the lines %d to %d", sp.mutant, sp.from, sp.to)
		}
	}
}
