// Package sweep deletes records that nobody needs any more: names that have been free for long,
// sessions that are over, locks and elections that nobody uses.
//
//	report, err := sweep.Run(ctx, st, sweep.Options{DryRun: true, Tell: func(f sweep.Finding) { fmt.Println(f) }})
//
// Leases work without a sweep. A record that is left takes room, and time of a listing. No store
// sweeps by itself, because an engine's own expiry deletes without checking.
//
// # What happens to a record
//
//	a name, held by a holder that gives signs of life   stays
//	a name, its holder or its session gone              is freed, as a waiter would; deleted by a later sweep
//	a name, free                                        is deleted when it was freed OlderThan ago, and its token is as old
//	a session that was not renewed for its TTL          is closed
//	a session that is closed                            is deleted, unless something that is kept names it
//	a roster of a lock, a list of candidates            members whose sessions are over are taken off. An empty one is
//	                                                    noted as unused, and deleted when it was unused for OlderThan.
//	                                                    That goes for a semaphore, too: the next user then sets its limit.
//	                                                    A pause isn't deleted before it is over
//	a value of an identity pool, its windows, a name    stay: ids that were made of them depend on them
//	a record of another program, or one with data       stays
//
// A record is deleted only at the version that was judged. If a process acquires the name in
// between, the name stays.
//
// # When a holder is gone
//
// A holder is gone when the store vouches for that, or when this process saw its record unchanged
// for its whole TTL. That is the rule by which names are taken. So a sweep lasts as long as the
// longest TTL of what is held, and [Options.Observe] at most. Records that would take longer are
// counted in [Report.Unsettled], and left alone.
//
// # Tokens
//
// Deleting a record also deletes the name's last token. The next token is the time of day in
// milliseconds, by the clock of the next holder. A record is deleted only if its token, read as
// such a time, is older than OlderThan, wherever the token came from. So the next token is higher
// than the last one, unless the next holder's clock is behind the sweep's by OlderThan or more.
//
// With such a clock, a guard that remembers the last term refuses the new holder: safe, but nobody
// can write. A guard that doesn't remember it admits the new holder, and after it the last holder's
// late requests. So OlderThan is at least an hour.
//
// Clocks that a time daemon keeps are within 1000 s. A clock that takes local time for UTC may be
// behind by up to 14 h, which the default of 30 days covers. A token from before 2020 came from a
// clock like that, or from another program, so its record stays.
package sweep
