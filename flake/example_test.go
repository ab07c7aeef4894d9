package flake_test

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/flake"
)

func ExampleDecode() {
	parts, err := flake.Decode(flake.Snowflake(), flake.ID(1050118621198921728))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(parts.Time.Format(time.RFC3339), "node", parts.Node)
	// Output: 2018-10-10T20:19:24Z node 347
}

func ExampleGenerator_NextWith() {
	layout, now := flake.Scatter(), time.Now()
	g, err := flake.New[flake.ID96](layout, 7, flake.FixedWindow(now, now.Add(time.Hour)), flake.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Stop()
	id, err := g.NextWith(0xcafe)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := flake.Decode(layout, id)
	fmt.Printf("node %d, metadata %x, %d characters, %v\n", parts.Node, parts.Metadata, len(id.String()), err)
	// Output: node 7, metadata cafe, 20 characters, <nil>
}

func ExampleNewLayout() {
	layout, err := flake.NewLayout(flake.Spec{
		Name: "ours", Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Second,
		Fields: []flake.Field{{Part: flake.Time, Bits: 32}, {Part: flake.Node, Bits: 11}, {Part: flake.Sequence, Bits: 20}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(layout.Nodes(), "nodes,", layout.PerSecond(), "ids a second each, until", layout.Exhausted().Year())
	// Output: 2048 nodes, 1.048576e+06 ids a second each, until 2162
}

func ExampleRange() {
	day := time.Date(2018, 10, 10, 0, 0, 0, 0, time.UTC)
	low, high, err := flake.Range[flake.ID](flake.Snowflake(), day, day.AddDate(0, 0, 1))
	fmt.Println("WHERE id >=", low, "AND id <", high, err)
	// Output: WHERE id >= 1049811748254646272 AND id < 1050174136120246272 <nil>
}
