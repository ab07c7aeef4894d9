// Package zookeeper keeps leases in ZooKeeper.
package zookeeper
