// Package stalltest runs tests whose outcome depends on processes being run when they are due: a
// real lease ends by real time, and a guard that has a tenth of a second to kill a command can't be
// judged on a machine that stood still for a second.
//
// Such a test says nothing where the machine stalled, or the disk on which stores keep their files.
// So each attempt at it has a witness, who measures how late it is woken, and how long a byte takes
// to be on the disk: an attempt that fails while the witness was in time fails the test; one that
// fails under a stall is told in the log, and made again.
//
//	steady.Run(t, func(t testing.TB) {
//		p := newPlace(t)
//		…
//	})
//
// An attempt that fails by [Over] is made again only if the stalls were as long as what it has to
// explain. What no stall explains (a token that falls, two holders of one) is told to the outer
// test, which fails at once.
//
// It is no cure for a limit that is too short: what a test waits for, and what doesn't depend on
// the time, needs no witness.
package stalltest
