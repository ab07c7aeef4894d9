// Package fencekubernetes guards what is kept in kubernetes.
package fencekubernetes
