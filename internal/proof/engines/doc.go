// Package engines tries what concerns all engines alike: faults, and what they cost beside their
// own recipes.
package engines
