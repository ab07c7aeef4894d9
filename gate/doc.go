// Package gate puts a lease in front of a program that knows nothing of leases: a reverse proxy that passes reads always, and
// writes only while this instance holds the lease.
//
//	g, err := gate.New(gate.Options{Upstream: upstream, Name: "billing"})
//	go server.Serve(listener) // with g as its handler
//	err = election.Run(ctx, manager, "billing", election.Callbacks{
//		OnStartedLeading: func(ctx context.Context, term election.Term) { _ = g.Open(ctx, term) },
//	}, election.Options{})
//
// With a single lease: manager.Run(ctx, "billing", func(ctx context.Context, l *lease.Lease) error { return g.Open(ctx, l) }).
//
// # What it promises
//
//   - A write is forwarded only while the term is valid, with [Options.MinLeft] of it left, looked at twice: when the request
//     comes, and when there is a connection to send it on.
//   - It carries the term's sequencer in the header Leasehold-Sequencer. One that a client has sent is taken out of every request.
//   - It is sent once, and so is a body: a request whose body the program may not expect is the last on its connection.
//   - Writes in flight are cut [Options.CutBefore] before the validity ends, and no byte of a write's body is taken on after that.
//   - [Gate.Open] returns when no write is under way any more, so a lease that is released after it has none behind it.
//   - A read goes on whatever becomes of the lease.
//
// # What it can't promise
//
// A write that was cut may have been done: its outcome is unknown, as that of any request whose answer is lost. One that was sent
// may also lie in a buffer, and be done late. That is what the sequencer is for: a resource that checks it (package fence)
// refuses what comes under an older term. Nor does the gate see what the program does by itself, without a request.
//
// # What a write is
//
// GET, HEAD, OPTIONS and TRACE without a body are reads, every other request writes, and so does one for an upgrade, such as to
// WebSocket. [Options.Reads] and [Options.Writes] name exceptions. A header or parameter that has the program take another
// method than the request's own makes a write of it, and so does a query that can't be parsed. Where there are exceptions, so does a path that can be read in two ways:
// with dot segments, empty segments, semicolons, backslashes, or any of those and slashes escaped.
//
// # Refusals
//
// What is refused gets JSON: error (not_holder, closing, ending, cut, client_stalled, upstream_unreachable, upstream_failed,
// not_supported), name, holder, token, since, outcome (not_done or unknown; for writes) and message. A Retry-After header is
// there when the gate expects to take writes soon, and not while another instance holds the lease, since when that ends isn't
// known.
package gate
