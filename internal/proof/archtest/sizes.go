package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Room is a folder of the house with what is below it, and its lines of Go.
type Room struct {
	Dir        string
	Production int
	Generated  int
	Proof      int // tests, and what is made for them
}

// Sizes returns the rooms by their folders, sorted. A row of the table that is made for tests is
// proof.
func Sizes(fsys fs.FS, table []Row) ([]Room, error) {
	t, err := read(fsys)
	if err != nil {
		return nil, err
	}
	j := &judge{tree: t, table: table}
	rooms := map[string]*Room{}
	for i := range t.files {
		f := &t.files[i]
		dir := room(f.dir)
		if rooms[dir] == nil {
			rooms[dir] = &Room{Dir: dir}
		}
		r := rooms[dir]
		row := j.row(f.dir)
		switch {
		case f.test || within(f.dir, "internal/proof") || row != nil && row.Tests:
			r.Proof += f.lines
		case ast.IsGenerated(f.syntax):
			r.Generated += f.lines
		default:
			r.Production += f.lines
		}
	}
	var all []Room
	for _, dir := range slices.Sorted(maps.Keys(rooms)) {
		all = append(all, *rooms[dir])
	}
	return all, nil
}

// room returns which room a folder belongs to: its first two names where rooms stand side by side
// in one folder, all of a group of commands, else the first.
func room(dir string) string {
	names := strings.Split(dir, "/")
	n := 1
	switch {
	case within(dir, "cmd/leasehold/internal/cli") && len(names) > 4:
		n = 5
	case slices.Contains([]string{"cmd", "compat", "internal", "store"}, names[0]) && len(names) > 1:
		n = 2
	}
	return strings.Join(names[:n], "/")
}

// SizesTable returns the rooms as a table for a page.
func SizesTable(rooms []Room) string {
	var b strings.Builder
	b.WriteString("| room | production | generated | proof |\n|---|---:|---:|---:|\n")
	sum := Room{Dir: "all"}
	row := func(name string, r Room) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", name, r.Production, r.Generated, r.Proof)
	}
	for _, r := range rooms {
		name := "`" + r.Dir + "`"
		if r.Dir == "." {
			name = "the root"
		}
		row(name, r)
		sum.Production, sum.Generated, sum.Proof = sum.Production+r.Production, sum.Generated+r.Generated, sum.Proof+r.Proof
	}
	row("all", sum)
	return b.String()
}
