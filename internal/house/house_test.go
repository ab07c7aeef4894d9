package house_test

import (
	"os"
	"os/exec"
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
