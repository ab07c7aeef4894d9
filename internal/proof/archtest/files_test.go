package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// suffix is that of a file for one system, or for one of the two builds: its siblings need no row.
var suffix = regexp.MustCompile(`_(linux|darwin|bsd|unix|windows|other|lite|local|full|amd64|arm64)$`)

// subject is a file's name without its suffixes and its kind.
func subject(name string) string {
	name = strings.TrimSuffix(name, filepath.Ext(name))
	for suffix.MatchString(name) {
		name = suffix.ReplaceAllString(name, "")
	}
	return name
}

// filesOf returns the subjects of the files of a folder that the page is about.
func filesOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"doc.go", "commands.go", "lockstep.go"}, name) {
			continue
		}
		if slices.Contains([]string{".go", ".s", ".js", ".css", ".html"}, filepath.Ext(name)) {
			found[subject(name)] = true
		}
	}
	return found
}

// isPackage reports whether there is Go in a folder, beside tests.
func isPackage(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go")) // the pattern is good
	return slices.ContainsFunc(files, func(path string) bool { return !strings.HasSuffix(path, "_test.go") })
}

// proof are packages for tests alone, outside internal/proof, and the marker of a lockstep, which has no code.
var proof = []string{
	"store/storetest", "store/faulty", "cmd/leasehold/internal/certtest", "cmd/leasehold/internal/issuer/interop", "fence/fencesql/interop",
	"server/web/browsertest", "store/dynamodb/dynamotables/interop", "internal/lockstep", "internal/lockstep/dev",
}

// large is from how many files on a room has to be on the page.
const large = 9

// docs/files.md has a table for every large room, with a row for each file, and a row for every smaller package.
func TestFilesAreListed(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "files.md"))
	if err != nil {
		t.Fatal(err)
	}
	rooms := map[string]map[string]bool{} // subjects, by room
	rows := regexp.MustCompile("`([^`]+)`")
	for section := range strings.SplitSeq(string(page), "\n### `") {
		room, table, is := strings.Cut(section, "`\n")
		if !is || strings.HasPrefix(section, "#") {
			continue
		}
		table, _, _ = strings.Cut(table, "\n## ")
		rooms[room] = map[string]bool{}
		for line := range strings.Lines(table) {
			cells := strings.SplitN(line, " | ", 2)
			if !strings.HasPrefix(line, "| `") || len(cells) != 2 {
				continue
			}
			for _, m := range rows.FindAllStringSubmatch(cells[0], -1) {
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(room), filepath.FromSlash(m[1]))); err != nil {
					t.Errorf("docs/files.md: %s has no %s", room, m[1])
				}
				rooms[room][subject(m[1])] = true
			}
		}
	}
	for room, listed := range rooms {
		if room == "internal/proof" { // of that, folders are listed
			continue
		}
		for name := range filesOf(t, filepath.Join(root, filepath.FromSlash(room))) {
			if !listed[name] {
				t.Errorf("docs/files.md has no row for %s/%s.*", room, name)
			}
		}
	}
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || !e.IsDir():
			return err
		case rel == ".":
		case strings.HasPrefix(e.Name(), "."), e.Name() == "testdata", e.Name() == "testserver", rel == "examples", rel == "internal/proof":
			return filepath.SkipDir
		case slices.Contains(proof, rel):
		case rooms[rel] != nil || !isPackage(path):
		case len(filesOf(t, path)) >= large:
			t.Errorf("docs/files.md has no table for %s, a room of %d files", rel, len(filesOf(t, path)))
		case !strings.Contains(string(page), "\n| `"+rel+"` | ") && !strings.Contains(string(page), "\n| `"+e.Name()+"/"): // in its folder's table
			t.Errorf("docs/files.md has neither a table nor a row for %s", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
