package archtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/archtest"
)

const root = "../../.."

func TestTheHouseStands(t *testing.T) {
	found, err := archtest.Check(os.DirFS(root), archtest.Table)
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
	for _, p := range archtest.Forcing(string(out)) {
		t.Error(p)
	}
}

// Code that made holds of its own would drive them in a way of its own, which the simulator doesn't run. So each way to make one is
// refused to each package that is above the driver and has holds, and let pass in the driver.
func TestFinding_S11_OnlyTheDriverMakesHolds(t *testing.T) {
	for _, dir := range []string{"lease", "internal/lessor", "internal/proof/sim", "internal/proof/sim/model"} {
		for _, by := range []string{"New", "NewSession", "Resume", "Named"} {
			if found := withHold(t, dir, by); len(found) != 1 || !strings.Contains(found[0].Text, "uses internal/protocol."+by) {
				t.Errorf("%s makes a hold by protocol.%s: %v, want one problem", dir, by, found)
			}
			if found := withHold(t, "internal/drive", by); len(found) != 0 {
				t.Errorf("the driver makes a hold by protocol.%s: %v", by, found)
			}
		}
	}
}

// withHold checks a sound tree with a file in dir that makes a hold.
func withHold(t *testing.T, dir, by string) []archtest.Problem {
	t.Helper()
	files := sound()
	delete(files, dir+"/lease.go")
	files[dir+"/made.go"] = source(archtest.Module+"/internal/protocol") + "\nvar h = protocol." + by + "()\n"
	return check(t, files)
}
