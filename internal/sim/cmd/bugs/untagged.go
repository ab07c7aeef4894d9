//go:build !seededbugs

// Bugs searches for seeded bugs; see main.go, which needs the build tag.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bugs: nothing can be switched off in this build; run it with: go run -tags seededbugs ./internal/sim/cmd/bugs")
	os.Exit(64)
}
