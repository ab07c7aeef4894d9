package watcher

// Latest is what one handle knows of a record whose server gives each change a number that rises,
// and tells changes late, out of order, or not at all. It decides which change that the server
// tells is as good as a read: one that comes after the latest that is known, after all that the
// handle has shown to anyone, and after the versions of the Waits that it would end. All others are
// in doubt: what is told after numbers that fell, since the server was put back from a backup, too.
// So no Wait returns an older record than its caller has seen.
//
// It is a value without a lock: the engine has one.
type Latest struct {
	Known bool // nothing in doubt has been told since At, and no read is under way
	// The number of the version that was last read, or told after that; 0 when it has none.
	At    uint64
	Shown uint64 // the highest number that the handle has shown
	since uint64 // how many reads had begun when that was
}

// Show says that the handle shows the version of that number to a caller, 0 for none. reads is how
// many reads of the handle's own, those that Read is told of, have begun.
func (l *Latest) Show(at, reads uint64) {
	l.Known = l.Known && at != 0
	l.Shown, l.since = max(l.Shown, at), reads
}

// Counts reports whether a change that is told under that number is as good as a read, for Waits
// that began with versions of the numbers from.
func (l *Latest) Counts(at uint64, from ...uint64) bool {
	if !l.Known || l.At == 0 || at < max(l.At, l.Shown) {
		return false
	}
	for _, n := range from {
		if n == 0 || at < n {
			return false
		}
	}
	return true
}

// Read says that a read, of which begun reads had begun when it did, itself among them, returned
// the version of that number.
func (l *Latest) Read(at, begun uint64) {
	l.Known, l.At = true, at
	if l.since < begun { // what was shown before came before
		l.Shown = 0
	}
	l.Shown = max(l.Shown, at)
}
