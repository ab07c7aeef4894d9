package leasetest

import (
	"sync"

	"github.com/leasehold/leasehold/store/faulty"
)

// Once returns a plan by which fault happens to the first operation that match picks, and none to
// the others.
func Once(fault faulty.Fault, match func(faulty.Op) bool) faulty.Plan {
	var done sync.Once
	return func(op faulty.Op) (f faulty.Fault) {
		if match(op) {
			done.Do(func() { f = fault })
		}
		return f
	}
}

// InTurn returns a plan by which one operation at a time asks what happens to it; nil stays nil.
func InTurn(plan faulty.Plan) faulty.Plan {
	if plan == nil {
		return nil
	}
	var mu sync.Mutex
	return func(op faulty.Op) faulty.Fault {
		mu.Lock()
		defer mu.Unlock()
		return plan(op)
	}
}

// Kind picks the operations of a kind.
func Kind(k faulty.Kind) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == k }
}

// Claims picks the writes by which a holder has the name, Frees those that free it.
func Claims(name string) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Key == name && op.Record.Owner != "" }
}

// Frees picks the writes that free the name.
func Frees(name string) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Key == name && op.Record.Owner == "" }
}

// ByOwner picks the writes whose record has that owner.
func ByOwner(owner string) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Record.Owner == owner }
}
