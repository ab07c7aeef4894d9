//go:build linux

package versions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// term is one term of a name, as its job showed it.
type term struct {
	token    fence.Token
	who      string
	from, to clock.Instant // its first line and its last
}

// read returns the terms of a name in the order of their first lines. It is an error if a job
// wrote a line after the job of a later term did, or if two terms have one token: whatever happens to processes, what
// `leasehold run` started is gone before somebody else has the name.
func read(path string) (terms []term, err error) {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(b), "\n")
	for i, line := range lines[:len(lines)-1] { // the last one may be cut off
		var t term
		if _, err := fmt.Sscanf(line, "%d %s %d", &t.token, &t.who, &t.from); err != nil {
			return terms, fmt.Errorf("line %d: %q: %w", i+1, line, err)
		}
		t.to = t.from
		switch last := len(terms) - 1; {
		case last < 0 || t.token > terms[last].token:
			terms = append(terms, t)
		case t.token < terms[last].token:
			return terms, fmt.Errorf("line %d: token %d of %s is at work after token %d of %s", i+1, t.token, t.who, terms[last].token, terms[last].who)
		case t.who != terms[last].who:
			return terms, fmt.Errorf("line %d: token %d was given out twice: to %s and to %s", i+1, t.token, terms[last].who, t.who)
		default:
			terms[last].to = t.to
		}
	}
	return terms, nil
}

// turns counts the terms of each version.
func turns(terms []term) map[string]int {
	n := map[string]int{}
	for _, t := range terms {
		n[t.who]++
	}
	return n
}

// gaps describes how long a name had no job between a term of one version and one of another.
func gaps(terms []term) string {
	by := map[string][]time.Duration{}
	for i := 1; i < len(terms); i++ {
		pair := terms[i-1].who + " to " + terms[i].who
		by[pair] = append(by[pair], terms[i].from.Sub(terms[i-1].to))
	}
	var all []string
	for pair, gaps := range by {
		slices.Sort(gaps)
		all = append(all, fmt.Sprintf("%s: %d, p50 %v, longest %v", pair, len(gaps),
			gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond)))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// The judge sees what must not be.
func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct{ lines, want string }{
		"terms in turn":     {"1 a 1\n1 a 2\n2 b 3\n5 a 4\n", ""},
		"one that lives on": {"1 a 1\n2 b 2\n1 a 3\n", "token 1 of a is at work after token 2 of b"},
		"a token twice":     {"1 a 1\n1 b 2\n", "given out twice: to a and to b"},
		"a token that fell": {"7 a 1\n6 b 2\n", "token 6 of b"},
		"no line at all":    {"1 a 1\nx\n", "line 2"},
		"a cut line":        {"1 a 1\n2 ", ""},
	} {
		path := filepath.Join(t.TempDir(), "ticks")
		if err := os.WriteFile(path, []byte(tt.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := read(path)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
