package serve

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/memory"
)

// The file engine's syncs have a processor to wait on, unless the environment says how many there are.
func TestSpareProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	f, err := file.Open(t.Context(), filepath.Join(t.TempDir(), "leases.db"), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := memory.New(memory.Options{})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0)) // the test's own may be another
	runtime.SetDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	check := func(what string, st store.Store, want int) {
		t.Helper()
		undo := spareProcessor(st)
		if n := runtime.GOMAXPROCS(0); n != want {
			t.Errorf("%s: %d processors, want %d", what, n, want)
		}
		undo()
		if n := runtime.GOMAXPROCS(0); n != usual {
			t.Errorf("%s: %d processors afterwards, want %d", what, n, usual)
		}
	}
	check("a file", f, usual+1)
	check("no file", m, usual)
	t.Setenv("GOMAXPROCS", "7")
	check("a file, and a setting", f, usual)
	for _, st := range []store.Store{f, m} {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What the limit of open files leaves is shared out so that no client has all of it.
func TestConnectionLimits(t *testing.T) {
	for _, c := range []struct{ all, one, wantAll, wantOne int }{{1000, 0, 1000, 900}, {1000, 10, 1000, 10}, {5, 0, 5, 5}} {
		o := Options{connections: c.all, client: c.one}.limits()
		if o.Most != c.wantAll || o.PerClient != c.wantOne {
			t.Errorf("%+v: %d, %d", c, o.Most, o.PerClient)
		}
	}
	if o := (Options{}).limits(); o.Most < 100 || o.PerClient >= o.Most {
		t.Errorf("by default: %d, %d", o.Most, o.PerClient)
	}
}
