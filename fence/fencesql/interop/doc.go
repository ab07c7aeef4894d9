// Package interop is nothing but tests: the guards of fencesql, and the ids of flake, in real
// PostgreSQL and SQLite databases, through their drivers. It is a module of its own, so that a user
// of fencesql or flake gets no driver but their own.
package interop
