// Package kubernetes keeps leases in Kubernetes Lease objects.
package kubernetes
