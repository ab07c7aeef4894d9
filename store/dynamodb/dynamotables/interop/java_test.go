package interop

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// A row that Java's client releases and keeps is free to us, and ours to it; whoever lists the locks can read every row of the
// table, companions included.
func TestJavaKeepsRows(t *testing.T) {
	t.Parallel()
	javaSide.ready(t)
	stalltest.Run(t, javaKeepsRows)
}

func javaKeepsRows(t testing.TB) {
	w := javaSide.world(t)
	they, m := javaSide.start(t, w, "they").(*javaClient), w.manager(w.url, ttl)
	for range 2 {
		if !they.acquire("job") {
			t.Fatal("the neighbour is refused a free lock")
		}
		excluded(t, m, "job")
		they.want("keep", "released")
		if text(w.row("job")["isReleased"]) != "1" {
			t.Fatalf("the row: %v", w.row("job"))
		}
		l, err := m.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		they.want("once job", "taken")
		they.want("list", "2") // the lock and its companion
		release(t, l)
		they.want("list", "2")
	}
	// A client that waits for a lock gets it when we have gone without a word.
	crashed, _ := cutOffFor(t, w, ttl)
	they.want("try job", "held")
	if crashed.Check() == nil {
		t.Errorf("the neighbour took the lease with %v of validity left", crashed.Left())
	}
}
