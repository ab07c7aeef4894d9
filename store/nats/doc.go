// Package nats keeps records in a NATS JetStream key-value bucket. The servers have to be of
// version 2.10 or later.
//
//	nc, err := nats.Connect("nats://nats-1:4222,nats://nats-2:4222", nats.MaxReconnects(-1))
//	js, err := jetstream.New(nc)
//	st, err := leasehold.Open(ctx, js, "leases", leasehold.Options{})
//
// A record is one key of the bucket, with a value in JSON, so nats kv get leases billing shows who
// holds billing. A bucket's keys have letters, digits, - _ / only; any other byte of a record's key
// is written as = and two hex digits: "a b.c" is a=20b=2Ec. The bucket should have no other use.
// docs/how-stores-work.md describes messages and consumers.
//
// # The bucket
//
// [Create] makes one, and so does
//
//	nats kv add leases --history=1 --replicas=3 --storage=file
//
// It must have no TTL, and may not mirror another bucket: [Open] refuses both. Deleting the bucket
// and creating it again restarts versions from 1. Don't do that while a program uses it.
//
// # What it relies on
//
//   - The sequence of the stream's messages, which only rises. It is the version of records.
//   - The stream's leader, for reads. They are asked of it (STREAM.MSG.GET), never of any replica
//     as the bucket's own Get does where direct gets are allowed.
//   - The bucket's settings. Open and every 30 s of writes look at them, and Properties change with
//     them.
//
// A leader that was cut off from the other replicas answers with the past until it notices, which
// takes 2 to 10 s. Its writes fail. So with replicas, a plain read is stale while the network is
// partitioned. That doesn't affect leases, since acquiring one is a write. It affects guards:
// [Store.Confirm] has a majority agree that the record that was read is still current. It needs
// servers of version 2.11 or later; on older ones guards fail. It leaves one message without data
// in the bucket.
//
// # Outcomes
//
//	not done    what JetStream refused before it stored anything; what was never sent
//	unknown     everything else, a missing answer above all
//
// The store sends nothing while the connection is down, because the client would keep that and send
// it later. A request is given up after 5 s.
//
// # Cost
//
// Acquire, renew and release of a lease take one round trip each. A name that is met for the first
// time is read first, which makes two. A conflict takes two. The first creation of a key after its
// deletion takes three. A store that waits has one consumer for each of the first 32 keys, and one
// of the whole bucket for all others.
//
// # Age
//
// None.
//
// # What it can't guarantee
//
// Durability, with the servers' default settings. JetStream acknowledges a write before it is
// synced to the disk, and syncs every two minutes. When the machine of a server fails (not only the
// process), acknowledged writes may be gone:
//
//   - 1 replica: acknowledged writes are lost, and with them leases and tokens: two may hold a
//     name.
//   - 3 replicas: they are lost when a majority fails together, as in a power failure, and may be
//     lost when one machine fails and comes back with less than it had while another replica lags.
//
// So [Store.Properties] says [store.FencingPerPrimary]. With sync_interval: always in the jetstream
// block of every server, and [Options].SyncAlways, it says [store.FencingLinearizable]. Tokens rise
// even over a loss, as long as wall clocks are roughly right, and a guarded resource refuses the
// older one.
//
// # Permissions
//
// For a bucket called leases, without a domain:
//
//	publish:   $KV.leases.>  $JS.API.STREAM.INFO.KV_leases  $JS.API.STREAM.MSG.GET.KV_leases
//	           $JS.API.CONSUMER.CREATE.KV_leases.>  $JS.API.CONSUMER.DELETE.KV_leases.>  $JS.FC.KV_leases.>
//	subscribe: _INBOX.>
//
// Create needs $JS.API.INFO and $JS.API.STREAM.CREATE.KV_leases, too. The server doesn't answer a
// forbidden request: it fails after 5 s.
package nats
