// Command soak runs many processes on one store (a file, three members of etcd, or PostgreSQL with
// a synchronous standby) for minutes, and kills, stops and breaks them at random. Meanwhile an
// outsider deletes, frees and edits the records and puts earlier ones back, and somebody wants the
// names as another kind. Beside them processes of `leasehold run` supervise commands whose children
// have forked, have left the session and are deaf to SIGTERM: they and their guards are killed and
// stopped, but never all three at once. The server that leads is killed: a member of etcd, which
// comes back; the primary of PostgreSQL, whose standby is promoted. What Leasehold promises has to
// hold:
//
//   - A guarded file, which keeps a mark and refuses late tokens, never accepts tokens out of
//     order, nor one token of two holders, and loses no write that it acknowledged.
//   - Guarded resources of every kind (HTTP with an online and an offline guard, gRPC, appended and
//     replaced files, SQLite, PostgreSQL, etcd, Redis, DynamoDB, Kubernetes), which get a share of
//     requests that were delayed over the end of their term, accept none after one of a later term,
//     by the order of their own logs, and lose none that they acknowledged.
//   - Critical sections that ask Check and nothing else overlap only where one of the two processes
//     was stopped inside its section, by us or by a busy machine, which no lease can prevent; or
//     where an outsider took the record away, for the third of a TTL in which the holder has to
//     notice, and a second for a busy machine.
//   - Nothing that `leasehold run` has started lives on beside what runs under a later term,
//     whatever was killed or stopped; and nothing lives on when all supervisors have ended: there
//     are no orphans.
//   - No token is given out twice, and one that is given out later is higher.
//   - When the faults are over, each name that somebody wants is taken again within its TTL and a
//     second, and what the machine and its disk were late by meanwhile; and each process ends when
//     told.
//
// The faults are drawn from the seed that is printed; what the processes are at when a fault
// strikes is not. Sections are compared by CLOCK_BOOTTIME, which all processes of a machine read
// alike.
//
// Usage:
//
//	go run ./internal/proof/soak [-procs 50] [-commands 8] [-duration 5m] [-ttl 2s] [-names 5] [-seed N] [-engine file] [-store FILE] [-resources all] [-bug NAME]
//
// It builds the command, and starts the servers of the store and of the guarded resources, where
// they are installed (scripts/engines install). It prints what came of it, with the attempts,
// refusals and accepted stale writes at each resource, and ends with exit code 1 when a promise was
// broken. A seeded bug (guard: the guarded file does not look at tokens; unfenced: all requests to
// the other resources bear the same token; check: holders don't call Check; group: supervisors end
// process groups only; in a build by internal/proof/mutate/cmd/seeded also any of seeded.Rules)
// shows that it would be noticed.
package main
