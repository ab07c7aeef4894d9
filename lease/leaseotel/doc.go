// Package leaseotel follows leases by OpenTelemetry: spans for acquisitions, terms, renewals and
// releases, and metrics. It is a module of its own, so that only programs that use it link
// OpenTelemetry.
//
//	telemetry, err := leaseotel.New(leaseotel.Config{})
//	manager, err := lease.NewManager(st, telemetry.Options(lease.Options{}))
//
// # Spans
//
// All times are the manager's clock's.
//
//   - "leasehold acquire", in the caller's trace: from the call of Acquire to its return. It links
//     to the acquisition of the term before, if the record has that one's trace parent.
//   - "leasehold wait", below it: from when Acquire began to wait. Its events are the changes of
//     the holder.
//   - "leasehold term", below the acquisition: from the acquisition to the end of the term. A lost
//     term has the status Error, the cause, and an exception event. Its events are jeopardy, and
//     its end.
//   - "leasehold renew", below the term: one renewal that failed. [Config.EachRenewal] adds those
//     that succeed.
//   - "leasehold release" and "leasehold hand over", below the term, linked to the caller's span.
//
// The name is the attribute leasehold.lease.name of every span. A term that outlives its trace's
// other spans is exported when it ends.
//
// # From term to term
//
// The record's Info has the trace parent of the acquisition under [store.InfoTraceParent], and
// keeps it when the name becomes free. So the next term links to it across processes. Programs that
// don't know the entry show it among the record's info, or ignore it.
//
// # Metrics
//
//	leasehold.lease.held              how many leases are held now
//	leasehold.lease.acquire.duration  seconds, by outcome: acquired, held, cancelled, kind, error
//	leasehold.lease.wait.duration     seconds of waiting for a holder, by outcome
//	leasehold.lease.renewals          renewals, by outcome: ok, error
//	leasehold.lease.renewal.margin    seconds of validity left when a renewal was answered
//	leasehold.lease.lost              terms lost, by cause
//	leasehold.lease.handovers         hand-overs, by outcome: ok, error
//	leasehold.telemetry.dropped       spans dropped because the exporter hung
//
// Each has the attribute leasehold.lease.kind: lease, election, pool, or session for a session's
// own record. No metric has the name of a lease, unless [Config.MetricName] gives it one.
//
// # What telemetry can't do
//
// Spans are ended, and so exported, on a goroutine of this package, behind a queue of [MaxQueue]. A
// span processor that hangs, or is slow, never delays an acquisition, a renewal or a release. When
// the queue is full, spans are dropped and counted. [Telemetry.Flush] waits for the queue.
//
// The shared holds of package lock (semaphores, read/write locks) have no term of their own: their
// session has.
package leaseotel
