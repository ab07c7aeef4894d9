// Package drive drives [protocol.Hold]. Package lease, the server's registry (internal/lessor), the
// simulator and the model check run this code. So production runs what is proven.
//
//	Want, Open ──► Next, Tell, Next, Tell … ──► Held ──► Term, Show … ──► Leave ──► Next, Tell … ──► Settle ──► over
//
// A [Driver] takes one hold from wanting a name to having freed it. It has no goroutine and does no
// I/O. The program that runs it carries out what [Driver.Next] returns and tells the outcome.
// [Runner] does both and blocks; the simulator does them by events.
//
// A [Term] is what the program that holds the name relies on. A [Roster] is what a session keeps. A
// [Recollection] is what outlives one attempt at a name.
//
// # The order of an end
//
// The program hears of the end first, and once. Then renewals end. Then the name is freed
// ([Leave]). What a session keeps doesn't expire while the session lives. So the driver retries
// freeing it until the session is over ([Driver.Settle]).
package drive
