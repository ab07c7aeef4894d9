//go:build !unix || solaris || aix

package file

import "sync"

// bell carries wake-ups between processes, where it can; here it can't, and waiters poll.
type bell struct{}

func newBell(string, string, *sync.WaitGroup, func(uint64), func()) *bell { return &bell{} }

func (*bell) listen(uint64) {}
func (*bell) ignore(uint64) {}
func (*bell) works() bool   { return false }
func (*bell) lingers() bool { return false }
func (*bell) renew()        {}
func (*bell) close()        {}
func (*bell) ring([]uint64) {}
