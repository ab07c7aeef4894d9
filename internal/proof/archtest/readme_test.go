package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README's library example is part of a program that is compiled and run.
func TestReadmeQuotesTheExample(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(readme), "```go\n")
	quoted, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("README.md has no Go example")
	}
	program, err := os.ReadFile(filepath.Join(root, "examples", "embedded", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(program), quoted) {
		t.Error("the Go example of README.md is not in examples/embedded/main.go as it stands there")
	}
}

// The program in the map of the packages is one that is compiled and run.
func TestTheMapQuotesTheExample(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(doc), "// # A program\n//\n")
	quoted, _, ended := strings.Cut(after, "//\n// The folder")
	if !found || !ended {
		t.Fatal("doc.go has no program")
	}
	quoted = strings.ReplaceAll("\n"+quoted, "\n//", "\n")
	example, err := os.ReadFile(filepath.Join(root, "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(example), quoted) {
		t.Error("the program of doc.go is not in example_test.go as it stands there")
	}
}

// The map of CONTRIBUTING.md leads to files and folders that are there.
func TestTheMapLeadsSomewhere(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Where is the code that …?\n")
	section, _, _ = strings.Cut(section, "\n<!--")
	there := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path)))
		return err == nil
	}
	questions := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.HasSuffix(strings.TrimSpace(cells[1]), "?") {
			continue
		}
		questions++
		for _, path := range regexp.MustCompile("`[a-z]+(/[a-z_./]+)?`").FindAllString(cells[2], -1) {
			path = strings.Trim(path, "`")
			if !there(path) {
				t.Errorf("CONTRIBUTING.md leads to %s, which isn't there: %s", path, cells[1])
			}
		}
	}
	if questions < 20 {
		t.Errorf("the map answers %d questions, and should answer 20", questions)
	}
}
