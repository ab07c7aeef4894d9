// Package lockstep has no code. A release renames its folder to the minor version, such as v0_6,
// and rewrites what imports it.
//
// Engines, the server and the command use the internal packages of the core, and what is made for
// engines, which change from one minor version to the next. Go knows no upper bound of a
// requirement. So each of those modules imports this package of the core. An engine of v0.5 beside
// the core of v0.6 fails when the go command resolves imports, before it compiles anything: package
// github.com/leasehold/leasehold/internal/lockstep/v0_5 is not there. The fix is to require all
// modules of Leasehold at one minor version.
package lockstep
