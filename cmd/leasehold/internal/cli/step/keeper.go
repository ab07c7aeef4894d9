package step

import (
	"time"
)

// KeeperName is the name of the process that renews a hold in the background, in lists of
// processes, and KeeperArg the only argument that makes this program one.
const (
	KeeperName = "lease-keeper"
	KeeperArg  = "lease-keeper"
)

// orders are what a keeper is told when it starts, by a pipe: nothing of it is in a list of
// processes.
type orders struct {
	Store  string        `json:"store"` // its URL
	Path   string        `json:"path"`  // of the hold's file
	TTL    time.Duration `json:"ttl"`
	OnLost string        `json:"on_lost"`
	// The process that is sent SIGTERM; it lives as long as its descriptor says.
	Parent int `json:"parent"`
	// Of the file whose descriptor is locked; 0 if the keeper lives with the parent.
	Byte int64 `json:"byte"`
}

// spare is the share of the TTL before the end of the validity at which a hold that can't be
// renewed counts as lost: the parent is told to end while nobody else can have the name.
const spare = 10

// retries is the share of the TTL after which a renewal that failed is tried again.
const retries = 20
