package mutate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Target is a package whose mutants are tried, and the tests that have to notice them.
type Target struct {
	Dir    string
	Files  []string // of them; all when nil
	Spare  []string // files that aren't mutated
	Funcs  []string // functions of them, as in an Edit; all when nil
	Suites []Suite  // in turn, until one notices
	Note   string   // for the report
}

// Suite is tests of one package.
type Suite struct {
	Dir string
	Run string // the tests' pattern; "" for all
}

// simulated are the simulator's tests that take less than a second.
const simulated = "^(TestSeeds|TestFinding_S16_OutsidersInTheSimulator)$"

// core are the targets that are no engines.
var core = []Target{
	{
		// What the model check tells states apart by: no decision reads it.
		Dir: "internal/protocol", Spare: []string{"state.go"},
		Suites: []Suite{{Dir: "internal/protocol"}, {"internal/proof/sim", simulated}, {Dir: "internal/lessor"}, {Dir: "lease"}},
		Note:   "state.go is left out: the model check tells states apart by it, and no decision reads it.",
	},
	{Dir: "internal/drive", Suites: []Suite{{Dir: "internal/drive"}, {"internal/proof/sim", simulated}, {Dir: "internal/lessor"}, {Dir: "lease"}}},
	{Dir: "fence", Suites: []Suite{{Dir: "fence"}}},
	{Dir: "fence/filemarks", Suites: []Suite{{Dir: "fence/filemarks"}}},
	{Dir: "lease", Suites: []Suite{{Dir: "lease"}}},
	{Dir: "lock", Suites: []Suite{{Dir: "lock"}}},
	{Dir: "internal/roster", Suites: []Suite{{Dir: "lock"}}},
	{Dir: "election", Suites: []Suite{{Dir: "election"}}},
	{Dir: "internal/ballot", Suites: []Suite{{Dir: "election"}}},
	{Dir: "internal/lessor", Suites: []Suite{{Dir: "internal/lessor"}}, Note: "The tests of the server, which drive it, are not run."},
}

// Targets returns the packages that safety depends on: those of the core, and those that engines
// name in store/*/mutants.json. The tests run with -short. It returns an error when such a file
// can't be read or says what a Target doesn't know.
func Targets(root string) ([]Target, error) {
	files, err := filepath.Glob(filepath.Join(root, "store", "*", "mutants.json"))
	if err != nil {
		return nil, err
	}
	all := slices.Clone(core)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var engine []Target
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&engine); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, engine...)
	}
	return all, nil
}
