// Package chapter9 follows the steps by which books build a lock on a coordination service, on
// etcd, ZooKeeper and Consul, by their own clients and without Leasehold: docs/chapter-9.md walks
// through it. It is for learning. Programs use package lease, which does all of it on any store.
package chapter9
