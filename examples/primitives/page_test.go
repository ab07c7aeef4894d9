package primitives_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// What the pages show of Go is code that is compiled and run, as it stands there.
func TestPagesQuoteTheCode(t *testing.T) {
	for page, from := range map[string]string{
		"primitives.md": "*.go", "locks.md": "../../lock/example_test.go", "coming-from.md": "../comingfrom/*.go", "chapter-9.md": "../chapter9/*.go",
		"start-go.md": "../embedded/main.go", "how-fence-sql.md": "../fencing-sql/main.go", "how-controller-leader.md": "../controller-runtime/main.go",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(from)
		if err != nil || len(files) == 0 {
			t.Fatal(from, err)
		}
		var code strings.Builder
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(b)
		}
		blocks := goBlock.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", page)
		}
		for _, b := range blocks {
			if !strings.Contains(code.String(), b[1]) {
				t.Errorf("%s shows what is not in %s:\n%s", page, from, b[1])
			}
		}
	}
}
