package mutate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Edit changes one place: in that function of that file, what is Old becomes New. Old is there
// exactly once.
type Edit struct {
	File, Func string
	Old, New   string
}

// Seed writes an overlay into dir with which the go command builds all [Bugs] into what it builds,
// and returns its path. A bug whose place isn't found as it is described is an error: the code has
// moved, and the bug has to follow it.
func Seed(root, dir string) (overlay string, err error) {
	out, err := seed(root, Bugs)
	if err != nil {
		return "", err
	}
	return out.write(root, dir)
}

func seed(root string, bugs map[string][]Edit) (files, error) {
	byFile := map[string][]variant{}
	sources := map[string]*source{}
	for _, bug := range slices.Sorted(maps.Keys(bugs)) {
		for _, e := range bugs[bug] {
			s := sources[e.File]
			if s == nil {
				var err error
				if s, err = read(root, e.File); err != nil {
					return nil, fmt.Errorf("seeded bug %s: %w", bug, err)
				}
				sources[e.File] = s
			}
			v, err := s.place(bug, e)
			if err != nil {
				return nil, err
			}
			byFile[e.File] = merged(byFile[e.File], v)
		}
	}
	out := files{}
	for path, variants := range byFile {
		out[path], _ = sources[path].rewrite(variants)
	}
	return out, nil
}

// merged returns variants with v, which becomes one with the same bug's other change of the same
// function.
func merged(variants []variant, v variant) []variant {
	i := slices.IndexFunc(variants, func(o variant) bool { return o.mutant == v.mutant && o.fn == v.fn })
	if i < 0 {
		return append(variants, v)
	}
	variants[i].changes = append(variants[i].changes, v.changes...)
	return variants
}

// place finds where an edit belongs.
func (s *source) place(bug string, e Edit) (variant, error) {
	fn := s.function(e.Func)
	if fn == nil {
		return variant{}, fmt.Errorf("seeded bug %s: %s has no function %s any more: say in internal/proof/mutate/seeds.go where its code went", bug, e.File, e.Func)
	}
	text := s.of(fn)
	if n := strings.Count(text, e.Old); n != 1 {
		return variant{}, fmt.Errorf("seeded bug %s: %s: %s has %d times, want once: %q; say in internal/proof/mutate/seeds.go what is there now", bug, e.File, e.Func, n, e.Old)
	}
	from := s.at(fn.Pos()) + strings.Index(text, e.Old)
	return variant{mutant: bug, fn: fn, changes: []change{{from, from + len(e.Old), e.New}}}, nil
}
