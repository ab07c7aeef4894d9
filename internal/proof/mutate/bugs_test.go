package mutate

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/seeded"
)

// Every safety rule has a seeded bug, and every bug its place in the sources.
func TestBugsHaveTheirPlaces(t *testing.T) {
	for _, rule := range slices.Concat(seeded.Rules, seeded.ShareRules, seeded.ShardRules) {
		if Bugs[string(rule)] == nil {
			t.Errorf("nothing takes %s out", rule)
		}
	}
	out, err := seed("../../..", Bugs)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range out {
		if _, err := parser.ParseFile(token.NewFileSet(), path, text, 0); err != nil {
			t.Error(err)
		}
	}
}

// A bug whose code has moved is not lost without a sound.
func TestABugWhoseCodeHasMoved(t *testing.T) {
	for says, e := range map[string]Edit{
		"has no function Hold.gone any more": {attemptGo, "Hold.gone", "x", "y"},
		"has 0 times, want once":             {attemptGo, "Hold.extend", "h.Deadline == sent", ""},
		" times, want once: \"prev\"":        {claimGo, "Hold.beginClaim", "prev", ""},
		"no such file":                       {"internal/protocol/moved.go", "Hold.extend", "", ""},
	} {
		if _, err := seed("../../..", map[string][]Edit{"bug": {e}}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "seeded bug bug") {
			t.Errorf("%+v: %v, want: %s", e, err, says)
		}
	}
}

// Every file and function that is to be mutated is there.
func TestTargetsAreThere(t *testing.T) {
	targets, err := Targets("../../..")
	if err != nil || len(targets) < len(core)+9 {
		t.Fatalf("%d targets: %v", len(targets), err)
	}
	for _, target := range targets {
		for _, name := range target.Funcs {
			there := false
			for _, file := range target.Files {
				s, err := read("../../..", target.Dir+"/"+file)
				if err != nil {
					t.Fatal(err)
				}
				there = there || s.function(name) != nil
			}
			if !there {
				t.Errorf("%s has no function %s, which targets.go or mutants.json names", target.Dir, name)
			}
		}
		for _, name := range target.Files {
			if _, err := os.Stat(filepath.Join("..", "..", "..", target.Dir, name)); err != nil {
				t.Errorf("targets.go or mutants.json of %s: %v", target.Dir, err)
			}
		}
	}
}
