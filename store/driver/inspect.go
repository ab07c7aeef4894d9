package driver

import "context"

// Finding is one thing that an engine found when it inspected the server, the account and the data
// that it works with.
type Finding struct {
	What   string // what was inspected: "table status", "permissions", "clock"
	Status Status
	Detail string // what the engine saw
	Advice string // what to do about it; "" when there is nothing to do
}

// Status is how good a finding is.
type Status string

// The statuses, the best first.
const (
	StatusOK   Status = "ok"
	StatusWarn Status = "warning" // works, but not as well or as safely as it could
	StatusFail Status = "failed"  // leases don't work, or aren't safe
)

// Inspector is the optional interface of stores that can inspect what they work with: identity,
// permissions, schema, consistency mode, the server's clock.
type Inspector interface {
	// Inspect returns the findings. It blocks until the inspection is done or ctx is, and changes
	// no record of others. What Inspect can't find out is a finding, too.
	Inspect(ctx context.Context) []Finding
}
