// Command newengine makes the skeleton of an engine: a module in store/NAME that passes the
// conformance suite, though it keeps its records in memory, and its rows in go.work, in the tables
// of packages, of modules and of files. It prints what remains to be done.
//
//	newengine NAME
package main

import (
	"bytes"
	"embed"
	"errors"
	"flag"
	"fmt"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/leasehold/leasehold"

//go:embed skeleton/*.txt
var skeleton embed.FS

func main() {
	root := flag.String("C", ".", "the `folder` of the workspace")
	flag.Parse()
	err := errors.New("want one NAME, as in newengine cassandra")
	if flag.NArg() == 1 {
		err = makeEngine(*root, flag.Arg(0), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "newengine:", err)
		os.Exit(1)
	}
}

var plain = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// makeEngine makes the engine, and says on out what remains to be done. It changes nothing when it
// returns an error about the name.
func makeEngine(root, name string, out io.Writer) error {
	if !plain.MatchString(name) || token.IsKeyword(name) {
		return fmt.Errorf("NAME %q: want a name for a Go package: lower-case letters and digits, a letter first", name)
	}
	dir := filepath.Join(root, "store", name)
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("NAME %q: store/%s is there already: choose another name, or remove that folder", name, name)
	}
	if err := rows(root, name); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := files(dir, name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, remains, name)
	return err
}

// files writes those of the module.
func files(dir, name string) error {
	mod := fmt.Sprintf("module %s/store/%s\n\ngo 1.26.0\n\nrequire %s v0.0.0\n", module, name, module)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	entries, err := skeleton.ReadDir("skeleton")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := skeleton.ReadFile("skeleton/" + e.Name())
		if err != nil {
			return err
		}
		to := strings.ReplaceAll(strings.TrimSuffix(e.Name(), ".txt"), "NAME", name)
		if err := os.WriteFile(filepath.Join(dir, to), bytes.ReplaceAll(text, []byte("NAME"), []byte(name)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// row is a line that a file gets for an engine, among those of its siblings.
type row struct {
	file, line string         // with NAME for the engine
	among      *regexp.Regexp // the lines of its siblings
	last       bool           // it follows all of them; otherwise it is sorted in
}

var table = []row{
	{file: "go.work", line: "\t./store/NAME", among: regexp.MustCompile(`^\t\./store/`)},
	{
		file: "go.work", line: "\t" + module + "/store/NAME v0.0.0 => ./store/NAME",
		among: regexp.MustCompile(`^\t` + regexp.QuoteMeta(module) + `/store/[a-z]+ v0\.0\.0 =>`),
	},
	{
		file: "internal/proof/archtest/table.go", line: "\t{Dir: \"store/NAME/...\", Floor: F1, Engine: true},",
		among: regexp.MustCompile(`^\t{Dir: "store/[a-z]+/\.\.\.", Floor: F1, Engine: true`), last: true,
	},
	{
		file: "docs/releasing.md", line: "| `store/NAME` | `store/NAME/vX.Y.Z` | yes |",
		among: regexp.MustCompile("^\\| `store/[a-z]+` \\|"),
	},
	{
		file: "docs/files.md", line: "| `store/NAME` | keeps leases in NAME |",
		among: regexp.MustCompile("^\\| `(shard|store)/[a-z/]+` \\|"),
	},
}

// rows writes the lines into the files that list engines.
func rows(root, name string) error {
	changed := map[string][]string{}
	for _, r := range table {
		lines, ok := changed[r.file]
		if !ok {
			text, err := os.ReadFile(filepath.Join(root, r.file))
			if err != nil {
				return err
			}
			lines = strings.Split(string(text), "\n")
		}
		line, at := strings.ReplaceAll(r.line, "NAME", name), -1
		for i, l := range lines {
			if r.among.MatchString(l) && (at < 0 || r.last || l < line) {
				if at = i; r.last || l < line {
					at++
				}
			}
		}
		if at < 0 {
			return fmt.Errorf("%s has no line that matches %s: the skeleton doesn't know its form any more", r.file, r.among)
		}
		changed[r.file] = slices.Insert(lines, at, line)
	}
	for file, lines := range changed {
		if err := os.WriteFile(filepath.Join(root, file), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const remains = `store/%[1]s is there. It conforms, in memory: go test ./store/%[1]s

To be done, as CONTRIBUTING.md says under "Add an engine":
  store/%[1]s/testserver/%[1]s.sh           what installs the server for tests
  internal/proof/servers/%[1]s.go           what starts it
  internal/proof/archtest/table.go          the one library that the engine may use
  store/%[1]s/doc.go                        what a record is there
  store/%[1]s/%[1]s.go, read.go             requests to the server, in place of the DB in memory
  store/%[1]s/mutants.json                  the code that tells errors apart
  internal/proof/engines/%[1]s_test.go      the engine beside the others
  store/open/%[1]s.go, %[1]s_test.go        the URL
  docs/stores.md, compose.yaml              how people reach it
  docs/files.md                             a table of its files, once there are many
then scripts/tidy, scripts/api, and
go test ./internal/proof/archtest -run 'TestWordsOfTheCode|TestSizesArePrinted' -update
`
