package file

import (
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// folder keeps what was found in a folder until a name in it comes, goes or leads to another file:
// each of these changes the time of the folder. So what is asked at each commit costs one system
// call.
type folder[T any] struct {
	path string
	last atomic.Pointer[found[T]]
}

// found is what was found in a folder as it was then.
type found[T any] struct {
	stamp stamp
	what  T
}

// get returns what find finds now, or found before. What an error comes with isn't kept.
func (f *folder[T]) get(find func() (T, error)) (T, error) {
	wall := clock.System().Wall() // that of the file system
	now, ok := stampOf(f.path)
	if last := f.last.Load(); ok && last != nil && last.stamp == now {
		return last.what, nil
	}
	what, err := find()
	if ok && err == nil && now.settled(wall) {
		f.last.Store(&found[T]{now, what})
	}
	return what, err
}

// stamp tells a folder as it is from what it becomes by a change.
type stamp struct {
	dev, ino    uint64
	sec, nsec   int64 // of the last change of its names
	csec, cnsec int64 // of the last change of any kind
}

// The times of a folder have the granularity of a timer of the kernel, 10 ms at most, or of the
// file system's dates, 2 s at most. Those without a fraction may be of such a file system.
const (
	fineTimes  = 100 * time.Millisecond
	wholeTimes = 5 * time.Second
)

// settled reports whether a change after that moment, when s was read, gives another stamp.
func (s stamp) settled(wall time.Time) bool {
	margin := fineTimes
	if s.nsec == 0 || s.cnsec == 0 {
		margin = wholeTimes
	}
	return wall.Sub(time.Unix(s.sec, s.nsec)) > margin && wall.Sub(time.Unix(s.csec, s.cnsec)) > margin
}
