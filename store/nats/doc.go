// Package nats keeps leases in a NATS JetStream key-value bucket.
package nats
