// Package leasehold has no code: it is the map of the packages. Leasehold keeps names that one
// process holds at a time: leases, locks, elections, numbers. A holder renews its name, and loses
// it when it dies. Each change of holder raises the name's token, by which a guarded resource
// refuses a late write of an earlier holder.
//
// # The packages
//
// Hold a name:
//
//	lease               one holder of a name at a time: acquire, renew, watch, release
//	lease/leaseotel     spans and metrics of leases, by OpenTelemetry
//	lock                mutex, read/write lock, semaphore, several names at once
//	election            one leader among candidates: priorities, hand-over, pause
//	shard               one owner for each part of a key space, among many workers
//	identity            for each process a value of its own: a number, a name, a network
//	flake               ids out of the time and such a number, without a call to anybody
//
// Refuse a late write, at what is guarded:
//
//	fence               tokens, sequencers, and the rule that refuses the old ones
//	fence/fencesql …    the same in the transaction of a database, an HTTP handler, a gRPC server, a file, Kubernetes
//	gate                a reverse proxy that passes writes only while its instance is the holder
//
// Keep the records somewhere:
//
//	store               what a store is: records, versions, errors, waiting
//	store/memory …      the engines: memory, file, etcd, consul, zookeeper, kubernetes, postgres, redis, nats, dynamodb
//	store/open          any engine, by a URL
//	store/driver        what the author of an engine needs
//	store/storetest     the tests that an engine has to pass
//	sweep               deletes the records that nobody needs any more
//
// Speak to programs in any language:
//
//	server, client      leases over HTTP, and that API from Go
//	compat/admiral      the disaster recovery of Admiral, with its table and its configuration
//	compat/rdlm         RDLM's protocol
//	cmd/leasehold       all of it as a command: run a program under a lease, elect, serve, look, operate
//
// Tell the time:
//
//	clock               a clock that counts while the machine is suspended, which nobody can set
//
// # A program
//
//	st := memory.New(memory.Options{}) // or file.Open, etcd.New, open.Parse(url): one that all copies share
//	defer st.Close()
//
//	m, err := lease.NewManager(st, lease.Options{})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//
//	// Run waits for the name, calls the function under its lease, and releases it. ctx ends when the lease is lost.
//	return m.Run(context.Background(), "nightly-report", func(ctx context.Context, l *lease.Lease) error {
//		if err := l.Check(); err != nil { // costs nanoseconds: ask before each step that must not be done twice
//			return err
//		}
//		fmt.Println("writing the report") // send l.Token() with each write, so that a late one is refused: package fence
//		return ctx.Err()
//	})
//
// The folder examples has whole programs; docs/concepts.md says what a lease promises, and what it
// can't.
package leasehold
