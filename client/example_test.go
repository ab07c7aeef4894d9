package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// A name for one piece of work that is shorter than the TTL.
func Example() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:7070", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	g, err := c.Acquire(ctx, "nightly", client.AcquireOptions{Holder: "report", TTL: time.Minute, Wait: 5 * time.Minute})
	var held *lease.HeldError
	switch {
	case errors.As(err, &held):
		log.Fatalf("%s still has it, since %v", held.Holder, held.Since)
	case errors.Is(err, store.ErrUnknownOutcome):
		log.Fatal("the server can't be reached; the name may be held for a minute, by nobody: ", err)
	case err != nil:
		log.Fatal(err)
	}
	defer func() {
		if err := c.Release(ctx, g); err != nil {
			log.Print(err)
		}
	}()
	work, cancel := context.WithTimeout(ctx, g.Left())
	defer cancel()
	req, err := http.NewRequestWithContext(work, http.MethodPut, "https://reports.example.com/nightly", http.NoBody)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set(fence.Header, g.Sequencer) // so that the resource can refuse it when it comes too late
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	_ = resp.Body.Close()
}

// A lease over HTTP that is renewed for as long as the work takes.
func ExampleOpen() {
	ctx := context.Background()
	st, err := client.Open(ctx, "http://127.0.0.1:7070", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	err = m.Run(ctx, "scheduler", func(ctx context.Context, l *lease.Lease) error {
		fmt.Println("working under token", l.Token())
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
}

// What changes, from now on.
func ExampleClient_Watch() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:7070", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	leases := map[string]client.Lease{}
	for e, err := range c.Watch(ctx, "billing/") {
		switch {
		case err != nil:
			log.Print("what is known grows old: ", err) // it goes on by itself, unless this was the last
		case e.Reset:
			clear(leases)
		case e.Gone:
			delete(leases, e.Lease.Name)
		case e.Lease != nil:
			leases[e.Lease.Name] = *e.Lease
			fmt.Println(e.Lease.Name, e.Lease.State, e.Lease.Holder)
		}
	}
}
