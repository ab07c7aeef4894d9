package driver

import "context"

// Finding is one thing that an engine saw when it looked at the server, the account and the data that it is to work with.
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

// Inspector is the optional extra of stores that can look at what they work with: identity, permissions, schema, consistency
// mode, the server's clock. It changes no record of others. It blocks until it has looked or ctx is done, and reports what
// it can't find out as a finding, too.
type Inspector interface {
	Inspect(ctx context.Context) []Finding
}
