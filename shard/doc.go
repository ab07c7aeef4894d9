// Package shard divides a space among workers: each name of a list, or each part of a hashed key
// space, has one owner at a time, under a fencing token.
package shard
