// Package etcd keeps leases in etcd.
package etcd
