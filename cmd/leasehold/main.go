// Leasehold says who owns what, and proves it: it runs commands under leases, and shows and ends
// them.
package main

import (
	"os"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

func main() {
	a := cli.New()
	os.Exit(a.Execute(root(a, os.Args[1:]), os.Args[1:]))
}
