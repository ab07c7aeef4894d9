// Leasehold says who owns what, and proves it: it runs commands under leases, and shows and ends
// them.
package main

import (
	"os"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/step"
	// Begins, and often ends, before main.
	_ "github.com/leasehold/leasehold/cmd/leasehold/internal/early"
	_ "github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == step.KeeperArg {
		step.KeeperMain()
		return
	}
	a := cli.New()
	os.Exit(a.Execute(root(a, os.Args[1:]), os.Args[1:]))
}
