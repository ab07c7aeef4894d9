//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: needs Linux, for signals and file locks as it has them")
	os.Exit(2)
}
