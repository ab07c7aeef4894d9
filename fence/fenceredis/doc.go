// Package fenceredis guards what is kept in redis.
package fenceredis
