//go:build unix

package shardchild

import "os"

// A host starts here, before the clients of the stores are initialised: see package leaseguard. Not
// in the goroutine that initialises packages, which is bound to its thread.
func init() {
	if len(os.Args) != 2 || os.Args[1] != Arg {
		return
	}
	code := make(chan int)
	go func() { code <- hostMain() }()
	os.Exit(<-code)
}
