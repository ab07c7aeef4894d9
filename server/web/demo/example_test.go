package demo_test

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/server/web/demo"
)

// Have something to look at on the page of a lock server: names are held, waited for and lost for five minutes.
func ExamplePlay() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	demo.Play(ctx, "http://127.0.0.1:7070", clock.System())
}
