// Package interop is nothing but tests: the guards of fencesql in real PostgreSQL and SQLite databases, through their drivers. It is
// a module of its own, so that whoever uses fencesql gets no driver but their own.
package interop
