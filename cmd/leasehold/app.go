package main

import "github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"

type app struct {
	*view.Viewer
	observing bool // show is to wait for a sign of life
}
