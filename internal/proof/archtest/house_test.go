package archtest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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

// The light build stays light only while nothing in it reaches the large clients, by whatever way.
func TestLiteLinksNoLargeClient(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "lite", "./cmd/leasehold")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	linked := strings.Fields(string(out))
	for _, want := range []string{"go.etcd.io/etcd/client/v3", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9", "modernc.org/sqlite"} {
		if !slices.Contains(linked, want) {
			t.Errorf("leasehold-lite doesn't link %s: it has to open a store of that kind", want)
		}
	}
	for _, path := range linked {
		for _, large := range []string{"k8s.io/", "github.com/aws/", "github.com/hashicorp/", "github.com/nats-io/", "github.com/go-zookeeper/"} {
			if strings.HasPrefix(path, large) {
				t.Errorf("leasehold-lite links %s: say `//go:build !lite` where it is imported", path)
			}
		}
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

func TestEachPublicPackageHasAnExample(t *testing.T) {
	missing, err := archtest.WithoutExample(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range missing {
		t.Errorf("%s has no Example: write one of at most 30 lines, which a user would type, in example_test.go", dir)
	}
}

func TestWithoutExample(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"lease/lease.go":        doc + "package lease\n\nfunc New() {}\n",
		"lease/lease_test.go":   "package lease\n\nfunc TestNew() {}\n",
		"lock/lock.go":          doc + "package lock\n\ntype Lock int\n",
		"lock/lock_test.go":     "package lock_test\n\nfunc ExampleLock() {}\n",
		"clock/clock.go":        doc + "package clock\n\nconst a, B = 1, 2\n",
		"doc.go":                doc + "package leasehold\n",
		"internal/drive/a.go":   doc + "package drive\n\nfunc New() {}\n",
		"examples/shop/shop.go": doc + "package shop\n\nfunc New() {}\n",
		"store/empty/a.go":      doc + "package empty\n\nfunc hidden() {}\n\nfunc (h kept) Shown() {}\n",
		"cmd/tool/main.go":      doc + "package main\n\nvar Version int\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if missing, err := archtest.WithoutExample(files); err != nil || !slices.Equal(missing, []string{"clock", "lease"}) {
		t.Errorf("%v, %v; want clock and lease", missing, err)
	}
}
