// Package standby is what `leasehold standby` does around the state checker of package admiral: it
// serves the state over HTTP, runs a command while this instance is active, or tells one that runs
// all the time, and opens Admiral's table.
package standby
