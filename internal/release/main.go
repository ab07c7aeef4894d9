package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

const usage = `want make VERSION --into DIR --tree TREE, check [VERSION], sbom TREE DIR, sums DIR, consume DIR VERSION or modules`

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	var o order
	from := flags.String("C", ".", "the checkout's `folder`")
	flags.StringVar(&o.Into, "into", "", "the `folder` of the release, which must not be there")
	flags.StringVar(&o.Tree, "tree", "", "the `folder` for a clone with the release's commit")
	//nolint:forbidigo // the day that stands in the changelog is the calendar's
	flags.StringVar(&o.Date, "date", time.Now().UTC().Format(time.DateOnly), "the `day` of the release")
	flags.BoolVar(&o.Rehearse, "rehearse", false, "for CI: whatever the checkout, the changelog and the last version are")
	flags.BoolVar(&o.Again, "again", false, "make the release that the version's tag has, and fail when it comes out otherwise")
	shared := flags.Bool("shared-cache", false, "consume by the user's own module cache, out of which the version is removed afterwards")
	words, err := parse(flags, args[1:])
	if err != nil {
		return err
	}
	root, err := filepath.Abs(*from)
	if err != nil {
		return err
	}
	for _, folder := range []*string{&o.Into, &o.Tree} {
		if *folder == "" {
			continue
		}
		if *folder, err = filepath.Abs(*folder); err != nil {
			return err
		}
	}
	o.Repo, o.Out = repo(root), out
	switch verb, n := args[0], len(words); {
	case verb == "make" && n == 1:
		o.Version = words[0]
		return o.make()
	case verb == "check" && n <= 1:
		o.Version = append(words, "")[0]
		return o.report()
	case verb == "sbom" && n == 2:
		return writeSBOMs(words[0], words[1])
	case verb == "sums" && n == 1:
		return writeSums(words[0])
	case verb == "consume" && n == 2:
		return consume(o.Repo, words[0], words[1], *shared, out)
	case verb == "modules" && n == 0:
		return list(root, out)
	}
	return fmt.Errorf("%q: %s", args, usage)
}

// parse parses flags wherever they stand between the words, and returns the words.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	var words []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return words, nil
		}
		words = append(words, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// list prints the table of docs/releasing.md.
func list(root string, out io.Writer) error {
	w, err := load(root)
	if err != nil {
		return err
	}
	fmt.Fprint(out, table(w))
	return nil
}
