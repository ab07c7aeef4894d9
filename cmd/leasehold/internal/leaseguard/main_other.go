//go:build !unix

package leaseguard

// guardMain does nothing: there is nothing to guard.
func guardMain() {}
