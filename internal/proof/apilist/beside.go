package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	gopath "path"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/proof/archtest"
)

// sides are the figures of one package in two workspaces.
type sides struct{ names, lines [2]int } // 0 where there is no such package

// beside prints a table of the packages of two workspaces. moved are pairs OLD=NEW of paths: a
// package at OLD or below is at NEW or below.
func beside(ctx context.Context, out io.Writer, before, dir string, now map[string][]string, moved []string) error {
	called := map[string]string{}
	for _, m := range moved {
		from, to, ok := strings.Cut(m, "=")
		if !ok || from == "" || to == "" {
			return fmt.Errorf("%q: want OLD=NEW, the paths of a package that was moved", m)
		}
		called[from] = to
	}
	old, err := lists(before)
	if err != nil {
		return err
	}
	all := map[string]*sides{}
	for side, of := range []struct {
		folder string
		lists  map[string][]string
		called map[string]string
	}{{before, old, called}, {dir, now, nil}} {
		for path, list := range of.lists {
			name := renamed(path, of.called)
			if all[name] == nil {
				all[name] = &sides{}
			}
			lines, err := archtest.DocLines(ctx, of.folder, path)
			if err != nil {
				return err
			}
			all[name].names[side] += exported(list)
			all[name].lines[side] += lines
		}
	}
	table(out, all)
	return nil
}

// renamed returns what a package is called now: by the longest folder that was moved.
func renamed(path string, called map[string]string) string {
	for folder := path; folder != "."; folder = gopath.Dir(folder) {
		if to := called[folder]; to != "" {
			return to + path[len(folder):]
		}
	}
	return path
}

func table(out io.Writer, all map[string]*sides) {
	fmt.Fprint(out, "| package | names then | now | lines of go doc then | now |\n|---|---:|---:|---:|---:|\n")
	var sum sides
	longest := [2]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", name, figure(s.names[0]), figure(s.names[1]), figure(s.lines[0]), figure(s.lines[1]))
		for side := range longest {
			sum.names[side] += s.names[side]
			sum.lines[side] += s.lines[side]
			longest[side] = max(longest[side], s.lines[side])
		}
	}
	fmt.Fprintf(out, "| all | %d | %d | %d | %d |\n", sum.names[0], sum.names[1], sum.lines[0], sum.lines[1])
	fmt.Fprintf(out, "| the longest | | | %d | %d |\n", longest[0], longest[1])
}

func figure(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
