// Package postgres keeps leases in a PostgreSQL table.
package postgres
