// Package versions proves that versions of the command share a store. Its tests run earlier
// versions beside the one of this checkout: on a file, on etcd and on PostgreSQL.
//
//	scripts/versions install              builds the earlier versions out of the history
//	scripts/versions [--for 60s]          runs the proof at length
//
// The file earlier lists the versions. docs/compatibility.md has the promises.
package versions
