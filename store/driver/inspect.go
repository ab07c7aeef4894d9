package driver

import "context"

// Finding is one thing that an engine found when it inspected the server, the account and the data that it works with.
type Finding struct {
	What   string // "table status", "permissions", "clock"
	Status Status
	Detail string // what was seen
	Advice string // what to do about it; "" when there is nothing to do
}

// Status says how good a finding is.
type Status string

// The statuses, the best first.
const (
	StatusOK   Status = "ok"
	StatusWarn Status = "warning" // works, but not as well or as safely as it could
	StatusFail Status = "failed"  // leases don't work, or aren't safe
)

// Inspector is the optional interface of stores that can inspect what they work with: identity, permissions, schema,
// consistency mode, the server's clock.
type Inspector interface {
	// Inspect returns the findings. It blocks until it is done or ctx is, and changes no record of others. What it can't find
	// out is a finding, too.
	Inspect(ctx context.Context) []Finding
}
