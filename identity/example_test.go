package identity_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// A process gets a machine's number, and makes ids with it.
func ExampleClaim() {
	ctx := context.Background()
	st := memory.New(memory.Options{}) // or any other engine
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		panic(err)
	}
	s, err := m.OpenSession(ctx)
	if err != nil {
		panic(err)
	}

	h, err := identity.Claim(ctx, s, "machines", identity.Options{Values: identity.Values{Range: "7-7"}, Name: "host-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := g.Next()
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := flake.Decode(flake.Snowflake(), id)
	fmt.Println("node", parts.Node, err)
	_, err = identity.Claim(ctx, s, "machines", identity.Options{})
	fmt.Println("exhausted:", errors.Is(err, identity.ErrExhausted))

	fmt.Println("released:", h.Release(ctx, g.Stop()))
	if err := errors.Join(s.Close(ctx), m.Close(), st.Close()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// node 7 <nil>
	// exhausted: true
	// released: <nil>
}

// A search in an inventory says which node has which id.
func ExampleDuplicatesIn() {
	for _, d := range identity.DuplicatesIn(map[string]string{"web-1": "17", "web-2": "18", "db-1": "17"}) {
		fmt.Println(d.Value, d.Holders)
	}
	// Output: 17 [db-1 web-1]
}
