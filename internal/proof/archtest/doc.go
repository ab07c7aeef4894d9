// Package archtest holds the rules of the house: who may import whom, how long a file may be, what
// a go.mod may say. Its test applies them to this source tree; [Table] is the place to put a new
// package.
//
// # Floors
//
// A package imports from floors below its own only. The table states what else each may import, and
// the reasons. Tests keep to the floors too, but may also use the reference engine, the test
// libraries, and the packages made for tests.
package archtest
