package archtest

import (
	"os"
	"path/filepath"
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
