package main

import (
	"fmt"
	"strings"
)

// table returns the published modules of the workspace as the table of docs/releasing.md.
func table(w *Workspace) string {
	var out strings.Builder
	out.WriteString("| module | tag | in lockstep with the core |\n|---|---|---|\n")
	for _, m := range w.Modules {
		if !m.Published {
			continue
		}
		name, lockstep := "`"+m.Dir+"`", "no: it uses package `fence` alone"
		switch {
		case m.Dir == ".":
			name, lockstep = "the core", "it has the marker"
		case m.Lockstep:
			lockstep = "yes"
		}
		fmt.Fprintf(&out, "| %s | `%s` | %s |\n", name, m.tag("vX.Y.Z"), lockstep)
	}
	return out.String()
}
