package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// blocks renders code: in shell, what is typed stands out from what is said about it, and from what
// comes back.
type blocks struct{}

func (blocks) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		n, ok := node.(*ast.FencedCodeBlock)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		language := string(n.Language(source))
		text := html.EscapeString(string(n.Lines().Value(source)))
		switch language {
		case "sh":
			text = said.ReplaceAllString(text, `<i>$1</i>`)
		case "console":
			text = typed.ReplaceAllString(text, `<b>$0</b>`)
		}
		_, err := fmt.Fprintf(w, "<pre tabindex=\"0\"><code>%s</code></pre>\n", text)
		return ast.WalkSkipChildren, err
	})
}

var (
	said  = regexp.MustCompile(`(?m)((?:^|  )# .*)$`)
	typed = regexp.MustCompile(`(?m)^\$ .*$`)
)

// largest is the size of a file that is shown; above it, a part is.
const largest = 60_000

// code is the page of a file, or of a folder and what is in it, but for tests.
func (s *site) code(name string) ([]byte, error) {
	info, err := os.Stat(s.file(name))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<h1><code>%s</code></h1>\n", html.EscapeString(name))
	if !info.IsDir() {
		return out.Bytes(), s.listing(&out, name, "")
	}
	entries, err := os.ReadDir(s.file(name))
	if err != nil {
		return nil, err
	}
	out.WriteString("<p>Without tests, and without what is in folders below.</p>\n")
	for _, e := range entries {
		file := path.Join(name, e.Name())
		if e.IsDir() || strings.HasSuffix(file, "_test.go") || filepath.Ext(file) == ".sum" {
			continue
		}
		if err := s.listing(&out, file, e.Name()); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func (s *site) listing(out *bytes.Buffer, file, title string) error {
	data, err := os.ReadFile(s.file(file))
	if err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return nil
	}
	if title != "" {
		fmt.Fprintf(out, "<h2 id=%q>%s</h2>\n", slug(title), html.EscapeString(title))
	}
	if len(data) > largest {
		data = append(data[:bytes.LastIndexByte(data[:largest], '\n')], "\n…"...)
	}
	fmt.Fprintf(out, "<pre tabindex=\"0\"><code>%s</code></pre>\n", html.EscapeString(string(data)))
	return nil
}
