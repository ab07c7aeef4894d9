package driver

import (
	"context"
	"os"

	"github.com/leasehold/leasehold/store"
)

// Witness is the optional interface of stores that can prove that a process has ended. An example
// is a file whose locks the kernel keeps. Call [PutOwn], [WaitHolder] and [Proof], which work on
// any store.
type Witness interface {
	// PutOwn is Put of a record whose Owner lives in this process: the work under the record ends
	// with the process at the latest. The record's Age is [store.AgeGone] once the process has
	// ended, and the files of [Witness.Proof] are open nowhere else. The Age stays so as long as
	// Owner and Token are the same, no matter which process wrote the record last.
	PutOwn(ctx context.Context, rec store.Record) (store.Record, error)

	// WaitHolder is Wait that also returns when the record's Owner is known to be gone, at once if
	// the Owner is gone already. The version may be the same then, and the Age is [store.AgeGone].
	WaitHolder(ctx context.Context, key, version string) (store.Record, error)

	// Proof returns the open files that prove that this process lives. It returns nil if nothing
	// can prove that here. A child process may inherit the files, and work under a record of this
	// process. Then the record's Owner stays alive until the child has ended, too. The files belong
	// to the store: don't close them.
	Proof() []*os.File
}

// PutOwn is Put of a record whose Owner lives in this process; see [Witness].
func PutOwn(ctx context.Context, s store.Store, rec store.Record) (store.Record, error) {
	if w, ok := s.(Witness); ok {
		return w.PutOwn(ctx, rec)
	}
	return s.Put(ctx, rec)
}

// WaitHolder is [store.Wait] that also returns when the record's Owner is known to be gone; see
// [Witness].
func WaitHolder(ctx context.Context, s store.Store, key, version string) (store.Record, error) {
	if w, ok := s.(Witness); ok {
		return w.WaitHolder(ctx, key, version)
	}
	return store.Wait(ctx, s, key, version)
}

// Proof returns the open files that prove that this process lives. It returns nil where the store
// knows no such proof; see [Witness].
func Proof(s store.Store) []*os.File {
	if w, ok := s.(Witness); ok {
		return w.Proof()
	}
	return nil
}
