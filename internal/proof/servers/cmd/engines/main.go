package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	cache, err := servers.Cache()
	if err != nil {
		return err
	}
	s := state{filepath.Join(filepath.Dir(cache), "engines")}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("want up, urls or down")
	}
	names := args[1:]
	for _, name := range names {
		if !slices.Contains(servers.Names(), name) {
			return fmt.Errorf("no engine is called %q: there are %q", name, servers.Names())
		}
	}
	switch args[0] {
	case "up":
		return s.up(names)
	case "serve": // what up starts in the background
		return s.serve(names)
	case "urls":
		return s.printURLs()
	case "down":
		return s.down()
	}
	return fmt.Errorf("%q: want up, urls or down", args[0])
}
