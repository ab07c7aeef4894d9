// Package shards proves package shard with real processes on real stores: a file, etcd and
// PostgreSQL. Its tests kill workers, stop them, have them leave and join, and kill the assigner.
// No key may have two owners at a time, and a guard may accept no write of an earlier term. Another
// test restarts every worker, one by one, while keys are written over HTTP: each write is accepted
// once, by the owner of its key, and no key is without an owner for long.
//
//	scripts/shards [--for 60s]   runs the first proof at length
//	scripts/shards restart       runs the second with 20 processes, 1,280 slices and 5,000 writes/s
package shards
