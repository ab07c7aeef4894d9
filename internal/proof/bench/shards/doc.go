// Package shards measures how well the default strategy of package shard balances, and how much it
// moves, beside Kafka's and Helix's assignors and a ring with bounded loads.
//
// The trace is that of Dicer's AlgorithmChaosSuite (github.com/databricks/dicer, January 2026): 8
// workers, of which 6 to 8 are up in each of 1,000 rounds; the load of each round is drawn afresh:
// 128 ranges of keys with random bounds, whose density differs by up to 4, and a total of up to 1.2
// times what the workers bear, 1,000 each; in half of the rounds one key has half of the load.
// Dicer gives such a key several replicas. Here a key has one owner, so the imbalance is counted
// against what one owner a key permits: the owner of the hot key has its load, and the others share
// the rest.
package shards
