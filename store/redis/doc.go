// Package redis keeps leases in Redis or Valkey.
package redis
