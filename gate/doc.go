// Package gate puts a lease in front of a program that knows nothing of leases. It is a reverse
// proxy that always passes reads, and passes writes only while this instance holds the lease.
//
//	g, err := gate.New(gate.Options{Upstream: upstream, Name: "billing"})
//	go server.Serve(listener) // with g as its handler
//	err = election.Run(ctx, manager, "billing", election.Callbacks{
//		OnStartedLeading: func(ctx context.Context, term election.Term) { _ = g.Open(ctx, term) },
//	}, election.Options{})
//
// With a single lease: manager.Run(ctx, "billing", func(ctx context.Context, l *lease.Lease) error
// { return g.Open(ctx, l) }).
//
// # What it guarantees
//
//   - A write is forwarded only while the term is valid, with [Options.MinLeft] of it left. The
//     gate checks twice: when the request comes, and when there is a connection to send it on.
//   - A write carries the term's sequencer in the header Leasehold-Sequencer. The gate removes a
//     client's own from every request.
//   - A write is sent once, and so is a body: a request whose body the program may not expect is
//     the last on its connection.
//   - Running writes are cut [Options.CutBefore] before the validity ends. No byte of a write's
//     body is sent after that.
//   - [Gate.Open] returns when the last write has ended, so a lease that is released after it has
//     no write behind it.
//   - A read continues whatever happens to the lease.
//
// # What it can't guarantee
//
// A write that was cut may have been done: it has an unknown outcome, as any request whose answer
// is lost. A write that was sent may also lie in a buffer, and be done late. A resource that checks
// the sequencer (package fence) refuses what comes under an older term. The gate doesn't see what
// the program does by itself, without a request.
//
// # What a write is
//
// GET, HEAD, OPTIONS and TRACE without a body are reads. Every other request is a write, and so is
// a request for an upgrade, such as to WebSocket. [Options.Reads] and [Options.Writes] name
// exceptions.
//
// Two more things make a request a write. One is a header or parameter that has the program take
// another method than the request's own. The other is a query that can't be parsed. Where there are
// exceptions, a path that can be read in two ways is a write, too. Such a path has dot segments,
// empty segments, semicolons or backslashes, or any of those or slashes escaped.
//
// # Refusals
//
// A refused request gets JSON with these fields:
//
//	error         not_holder, closing, ending, cut, client_stalled, upstream_unreachable, upstream_failed or not_supported
//	name, holder, token, since
//	outcome       not_done or unknown; for writes
//	message
//
// A Retry-After header is there when the gate expects to take writes soon. It is missing while
// another instance holds the lease, since the gate can't know when that ends.
package gate
