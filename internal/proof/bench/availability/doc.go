// Package availability measures for how long nobody leads: package election beside etcd's
// concurrency.Mutex, client-go's leaderelection and `consul lock`, on the same servers at the same
// time, while latency rises and jumps, the network hangs, and leaders are stopped and killed. Each
// candidate is a process of its own. scripts/bench-availability writes
// docs/benchmarks-availability.md.
package availability
