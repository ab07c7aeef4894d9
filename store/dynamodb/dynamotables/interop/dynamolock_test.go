package interop

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// A row that dynamolock releases and keeps, as it does by default, is free to us, and ours to it.
func TestDynamolockKeepsRows(t *testing.T) {
	t.Parallel()
	goSide.ready(t)
	stalltest.Run(t, dynamolockKeepsRows)
}

func dynamolockKeepsRows(t testing.TB) {
	w := goSide.world(t)
	they, m := goSide.start(t, w, "they").(*goClient), w.manager(w.url, ttl)
	for range 2 {
		if !they.atOnce("job") {
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
		release(t, l)
	}
}
