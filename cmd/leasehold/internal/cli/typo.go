package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
)

// mistyped returns variables of the environment that were meant to be settings, as far as can be
// told, and what they were meant to be. They are no errors: a variable of that name may be another
// program's.
func mistyped(environ []string) (pairs [][2]string) {
	var known []string
	for _, s := range Settings() {
		known = append(known, s.Env())
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, config.EnvPrefix) || slices.Contains(known, name) || slices.Contains(ours, name) {
			continue
		}
		for _, k := range known {
			if most := min(2, (len(k)-len(config.EnvPrefix))/2); Distance(name, k) <= most {
				pairs = append(pairs, [2]string{name, k})
				break
			}
		}
	}
	return pairs
}

// ours are variables that are no settings and yet like one.
var ours = []string{"LEASEHOLD_SLOT", "LEASEHOLD_HOLDER"}

// HintTypos says of each variable that looks like a setting what it was meant to be.
func (a *App) HintTypos() {
	for _, pair := range mistyped(os.Environ()) {
		a.Say("%s is no setting, and is not used: did you mean %s?", pair[0], pair[1])
	}
}

// Distance returns how many letters have to be changed, left out, put in, or swapped with the next
// one, to make one text of the other.
func Distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, now := rows[0], rows[1], rows[2]
		now[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, now, before
	}
	return rows[1][len(b)]
}
