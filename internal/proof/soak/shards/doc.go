// Package shards proves package shard with real processes on real stores: a file, etcd and
// PostgreSQL. Its tests kill workers, stop them, have them leave and join, and kill the assigner.
// No key may have two owners at a time, and a guard may accept no write of an earlier term.
//
//	scripts/shards [--for 60s]   runs the proof at length
package shards
