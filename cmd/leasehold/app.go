package main

import (
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
)

type app struct {
	*cli.App
	observes  *lease.Observer // made when it is first needed
	book      *sightings.Book // what it saw, and others before
	observing bool            // show is to wait for a sign of life
}
