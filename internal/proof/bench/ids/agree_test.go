package ids

import (
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"

	"github.com/leasehold/leasehold/flake"
)

// Ids that the libraries make are taken apart by flake as by themselves, and the other way round.
func TestLayoutsAreThoseOfTheLibraries(t *testing.T) {
	window := flake.FixedWindow(time.Now().Add(-time.Hour), time.Now().Add(time.Hour))

	snowflake.NodeBits, snowflake.StepBits = 10, 12
	node, err := snowflake.NewNode(777)
	if err != nil {
		t.Fatal(err)
	}
	ours := generator(t, flake.Snowflake(), 777, window)
	for range 1000 {
		theirs := node.Generate()
		p := decode(t, flake.Snowflake(), flake.ID(theirs))
		if p.Time.UnixMilli() != theirs.Time() || int64(p.Node) != theirs.Node() || int64(p.Sequence) != theirs.Step() {
			t.Fatalf("%d: %+v", theirs, p)
		}
		id, err := ours.Next()
		if err != nil {
			t.Fatal(err)
		}
		if s, p := snowflake.ParseInt64(int64(id)), decode(t, flake.Snowflake(), id); s.Time() != p.Time.UnixMilli() || s.Node() != 777 || s.Step() != int64(p.Sequence) {
			t.Fatalf("%d: %+v", id, p)
		}
	}

	sony, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 54321, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ours = generator(t, flake.Sonyflake(), 54321, window)
	began := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC)
	for range 300 {
		theirs, err := sony.NextID()
		if err != nil {
			t.Fatal(err)
		}
		id, err := ours.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []uint64{theirs, uint64(id)} {
			m, p := sonyflake.Decompose(id), decode(t, flake.Sonyflake(), flake.ID(id))
			if uint64(p.Time.Sub(began)/(10*time.Millisecond)) != m["time"] || p.Node != m["machine-id"] || p.Sequence != m["sequence"] {
				t.Fatalf("%d: %+v, %v", id, p, m)
			}
		}
	}
}

func generator(t *testing.T, l flake.Layout, node uint64, w flake.Window) *flake.Generator[flake.ID] {
	t.Helper()
	g, err := flake.New[flake.ID](l, node, w, flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Stop() })
	return g
}

func decode(t *testing.T, l flake.Layout, id flake.ID) flake.Parts {
	t.Helper()
	p, err := flake.Decode(l, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
