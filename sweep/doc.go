// Package sweep deletes what is of no use any more: records of names that have been free for long, of sessions that are over, of
// locks and elections that nobody uses.
//
//	report, err := sweep.Run(ctx, st, sweep.Options{DryRun: true, Tell: func(f sweep.Finding) { fmt.Println(f) }})
//
// Nothing needs it to go on: a record that is left takes room, and time of a listing. No store sweeps by itself, for what an engine's
// own expiry deletes it deletes without asking.
//
// # What becomes of a record
//
//	a name, held by somebody who gives signs of life    stays
//	a name, its holder or its session gone              is freed, as by whoever wants it; deleted by a later sweep
//	a name, free                                        is deleted when it was freed OlderThan ago, and its token is as old
//	a session that nobody has renewed for its TTL       is closed
//	a session that is closed                            is deleted, unless something that is kept names it
//	a roster of a lock, a list of candidates            those whose sessions are over are taken off. One that nobody is left on
//	                                                    is noted as unused, and deleted when it has been that for OlderThan:
//	                                                    a semaphore's too, whose limit is then what the next user says.
//	                                                    A pause isn't deleted before it is over
//	a value of an identity pool, its windows, a name    stay: ids that were made of them depend on them
//	what another program wrote, what carries data       stays
//
// A record is deleted only at the version that was judged: who takes the name in between keeps it.
//
// # Who is gone
//
// A holder is gone when the store vouches for it, or when its record has not changed for its whole TTL as this process saw it: the
// rule by which names are taken. So a sweep lasts for the longest TTL of what is held, [Options.Observe] at most; what would take
// longer is counted in [Report.Unsettled], and left alone.
//
// # Tokens
//
// With its record a name forgets its token. The next one is the time of day in milliseconds, by the clock of whoever takes the name.
// A record goes only if its token, read as such a time, is older than OlderThan, however it came to be that. So the next token is
// higher than the last one unless the clock of who takes the name is behind that of the sweep by OlderThan or more. Then a guard that
// remembers the last term refuses the newcomer: safe, but nobody can write. A guard that doesn't remember it lets the newcomer in, and after it
// what the last holder sends late. So OlderThan is an hour at least. Clocks that a time daemon keeps are within 1000 s; one that takes local
// time for UTC may be behind by up to 14 h, which the default of 30 days covers. A token of before 2020 was given by a clock like that, or by
// another program: it stays.
package sweep
