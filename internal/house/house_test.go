package house_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/internal/house"
)

const root = "../.."

func TestTheHouseStands(t *testing.T) {
	found, err := house.Check(os.DirFS(root), house.Table)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Error(p)
	}
}

func TestNoRequiredModuleForcesALaterGo(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Version}} {{.GoVersion}}", "all")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	for _, p := range house.Forcing(string(out)) {
		t.Error(p)
	}
}

// Whoever made holds of its own would drive them in a way of its own, which the simulator doesn't run.
func TestFinding_S11_OnlyTheDriverMakesHolds(t *testing.T) {
	for _, dir := range []string{"lease", "internal/sim/..."} {
		i := slices.IndexFunc(house.Table, func(r house.Row) bool { return r.Dir == dir })
		if i < 0 || !slices.Contains(house.Table[i].Never, "internal/rules.New") || !slices.Contains(house.Table[i].Never, "internal/rules.Resume") {
			t.Errorf("%s may make holds", dir)
		}
	}
}
