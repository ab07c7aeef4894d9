// Package consul keeps leases in Consul's key-value store.
package consul
