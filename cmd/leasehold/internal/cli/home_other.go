//go:build !unix

package cli

func ownedByAnother(string) bool { return false }
