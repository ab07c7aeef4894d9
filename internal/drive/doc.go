// Package drive drives [protocol.Hold]: package lease, the server's registry (internal/lessor), the simulator and the model check
// run this code, so that what is proven of it is what production runs.
//
//	Want, Open ──► Next, Tell, Next, Tell … ──► Held ──► Term, Show … ──► Leave ──► Next, Tell … ──► Settle ──► over
//
// A [Driver] takes one hold from wanting a name to having let go of it. It has no goroutine and does no I/O: the program that runs it
// carries out what [Driver.Next] returns and tells the outcome. [Runner] does that and blocks; the simulator does it by events.
//
// A [Term] is what the program that holds the name relies on. A [Roster] is what a session keeps. A [Recollection] is what
// outlives one attempt at a name.
//
// # The order of an end
//
// The program hears of it first, and once; then renewals end; then the name is freed ([Leave]). What a session keeps doesn't expire
// while the session lives, so letting go of it is tried until the session is over ([Driver.Settle]).
package drive
