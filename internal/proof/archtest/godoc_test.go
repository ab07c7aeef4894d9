package archtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/archtest"
)

func TestGoDocFitsTwoScreens(t *testing.T) {
	long, packages, err := archtest.LongDocs(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range long {
		t.Error(p)
	}
	if packages < 50 {
		t.Errorf("looks at %d packages: want those of every module, more than 50", packages)
	}
}

// tall writes a package whose comment has so many lines of code.
func tall(t *testing.T, folder, dir, name string, lines int) {
	t.Helper()
	text := "// Package p is tall.\n//\n" + strings.Repeat("//\tx\n", lines) + "package " + name + "\n\n// X is exported.\nconst X = 1\n"
	write(t, folder, dir+"/p.go", text)
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The line after the last that is granted counts, in every module, and only in packages that others can import.
func TestLongDocs(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("GOWORK", "")
	write(t, folder, "go.work", "go 1.26.0\n\nuse (\n\t.\n\t./store/own\n)\n")
	write(t, folder, "go.mod", "module example.org/p\n\ngo 1.26.0\n")
	write(t, folder, "store/own/go.mod", "module example.org/p/store/own\n\ngo 1.26.0\n")
	tall(t, folder, "lock", "lock", 10)
	lines, err := archtest.DocLines(t.Context(), folder, "lock")
	if err != nil {
		t.Fatal(err)
	}
	if lines < 10 || lines > 20 {
		t.Fatalf("a comment of some 12 lines is printed in %d", lines)
	}
	other := lines - 10
	tall(t, folder, "lock", "lock", archtest.MaxDoc-other)
	for _, dir := range []string{"lease", "store/own", "store/own/deep"} {
		tall(t, folder, dir, filepath.Base(dir), archtest.MaxDoc-other+1)
	}
	for _, dir := range []string{"internal/drive", "store/own/internal/kept", "examples/shop", "lease/testdata/p"} {
		tall(t, folder, dir, filepath.Base(dir), 3*archtest.MaxDoc)
	}
	tall(t, folder, "cmd/tool", "main", 3*archtest.MaxDoc)

	long, packages, err := archtest.LongDocs(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if packages != 4 {
		t.Errorf("looks at %d packages: want lock, lease, store/own and store/own/deep", packages)
	}
	var got []string
	for _, p := range long {
		got = append(got, p.Path)
		if !strings.Contains(p.Text, "101 lines, of 100 at most") || !strings.Contains(p.Text, "package comment") {
			t.Errorf("%s: says neither lines nor what to do", p)
		}
	}
	if strings.Join(got, " ") != "lease store/own store/own/deep" {
		t.Errorf("finds %v: want lease, store/own, store/own/deep", got)
	}

	write(t, folder, "sound/p.go", "package sound\n\nvar X = \n")
	if _, _, err := archtest.LongDocs(t.Context(), folder); err == nil {
		t.Error("no error for a file that can't be parsed")
	}
}
