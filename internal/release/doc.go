// Command release makes a release of every published module, in a folder. It publishes nothing, and
// leaves the checkout as it is. scripts/release and scripts/release-check call it;
// docs/releasing.md says how they are used.
//
//	release make VERSION --into DIR --tree TREE   all but the packages
//	release check [VERSION]                       what VERSION may not contain, beside the last release
//	release sums DIR                              writes SHA256SUMS over all that is in DIR
//	release consume DIR VERSION                   uses a release from outside, as its users do
//	release modules                               which modules are published
package main

// Proof: what a release is and what it must not be is shown by main_test.go, on workspaces of a few
// modules, with the real git and go commands; release consume shows it on the project itself.
