// Seeded runs a command of the go tool with a source tree in which seeded bugs can be switched on;
// see package mutate.
//
//	go run ./internal/proof/mutate/cmd/seeded go test ./internal/proof/sim -run TestFoundBugs
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/leasehold/leasehold/internal/proof/mutate"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "seeded:", err)
		os.Exit(125)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 0, errors.New("want a command, such as: go test ./internal/proof/sim")
	}
	root, err := mutate.Root(".")
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "seeded")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := mutate.Seed(root, dir)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}
