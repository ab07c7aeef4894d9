// Package primitives builds a lock up from compare-and-swap, one step at a time, for learning:
// docs/primitives.md walks through it. Programs use package lease, which does all of it, and what
// goes wrong besides.
package primitives
