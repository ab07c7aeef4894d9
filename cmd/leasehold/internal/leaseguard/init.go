package leaseguard

import "os"

// A guard starts here, before the packages that sort after this one are initialised: those of the
// stores' clients take ten times the memory and the time of a guard. Packages are initialised in
// the order of their import paths, each once those that it imports are. So what this package
// imports, all of it, decides what a guard costs: a test bounds that.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		guardMain()
		os.Exit(0)
	}
}
