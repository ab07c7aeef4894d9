// Command engines brings all servers that tests of the engines run against up on loopback, in the
// background, and stops them.
//
//	engines up [NAME…]   all that are installed, or those named; prints the lines of urls
//	engines urls         prints export lines for tests, for eval; and, as errors, how the command reaches each
//	engines down         stops them, and removes their data
//
// One process in the background is the parent of all servers. What it knows is in the folder
// engines beside the one that scripts/engines installs into; it holds a lock there as long as it
// runs, and its servers die with it.
package main
