//go:build !linux && !darwin

package file

// bootID returns "": the system has no name for a boot that is known never to come again.
func bootID() string { return "" }
