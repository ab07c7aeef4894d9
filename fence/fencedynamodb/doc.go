// Package fencedynamodb guards what is kept in dynamodb.
package fencedynamodb
