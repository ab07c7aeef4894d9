package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var checkout = filepath.Join("..", "..")

var whole struct {
	sync.Once
	dir string
	err error
}

// theSite is that of this checkout, made once for all tests.
func theSite(t *testing.T) string {
	t.Helper()
	whole.Do(func() {
		if whole.dir, whole.err = os.MkdirTemp("", "site"); whole.err == nil { //nolint:usetesting // it outlives the test that asks first
			var made made
			if made, whole.err = build(checkout, whole.dir); whole.err == nil {
				fmt.Println(made)
			}
		}
	})
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	return whole.dir
}

var (
	links = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(`id="([^"]*)"`)
)

// files returns the HTML of a site, by address.
func pagesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".html" {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		all[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The HTML itself is looked at, not what the generator knows of it: every link from one page to another
// leads to a file and an id that are there, whatever the site lies below, and no page needs the network.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	dir := theSite(t)
	pages := pagesOf(t, dir)
	has := map[string]map[string]bool{}
	for at, text := range pages {
		has[at] = map[string]bool{}
		for _, m := range ids.FindAllStringSubmatch(text, -1) {
			if has[at][m[1]] {
				t.Errorf("%s has #%s twice", at, m[1])
			}
			has[at][m[1]] = true
		}
	}
	checked, reached := 0, map[string]bool{"index.html": true}
	for todo := []string{"index.html"}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for _, m := range links.FindAllStringSubmatch(pages[at], -1) {
			u, err := url.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			if u.Scheme != "" {
				if strings.HasPrefix(m[0], "src") {
					t.Errorf("%s needs %s", at, u)
				}
				continue
			}
			if path.IsAbs(u.Path) {
				t.Errorf("%s: %s works below no prefix", at, u)
			}
			to := path.Join(path.Dir(at), u.Path)
			if u.Path == "" {
				to = at
			}
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: %s: there is no %s", at, u, to)
			}
			if u.Fragment != "" && !has[to][u.Fragment] {
				t.Errorf("%s: %s: %s has no #%s", at, u, to, u.Fragment)
			}
			checked++
			if path.Ext(to) == ".html" && !reached[to] {
				reached[to] = true
				todo = append(todo, to)
			}
		}
	}
	for at := range pages {
		if !reached[at] {
			t.Errorf("no way leads from the first page to %s", at)
		}
	}
	docs, err := filepath.Glob(filepath.Join(checkout, "docs", "*.md"))
	if err != nil || len(docs) < 30 || len(pages) < len(docs) || checked < 1000 {
		t.Errorf("%d links of %d pages, from %d files in docs: %v", checked, len(pages), len(docs), err)
	}
	fmt.Printf("%d links of %d pages lead somewhere\n", checked, len(pages))
}

// tree writes a small checkout.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// sound is a checkout without a fault.
func sound() map[string]string {
	return map[string]string{
		"README.md":      "# Top\n\n[map](docs/README.md), [code](code), [page](docs/a.md#b-c-1)\n",
		"docs/README.md": "# Map\n\n## Begin\n\n| read | to |\n|---|---|\n| [A](a.md) | `x` |\n",
		"docs/a.md":      "# A `page`\n\n<!-- aside-note -->\n\n## B, c!\n\n## B & *c*\n\n## B c\n\n[self](#b--c) [up](../README.md#top)\n\n```sh\nls <x>  # said\n```\n",
		"code/x.go":      "package x // <&>\n",
		"code/x_test.go": "package x // unseen\n",
		"code/sub/y.go":  "package y\n",
	}
}

func TestASmallSite(t *testing.T) {
	into := t.TempDir()
	made, err := build(tree(t, sound()), into)
	if err != nil {
		t.Fatal(err)
	}
	if made.pages != 3 || made.sources != 1 || made.links != 6 {
		t.Errorf("%+v", made)
	}
	pages := pagesOf(t, into)
	for at, wants := range map[string][]string{
		"a.html": {
			`<h2 id="b-c">B, c!</h2>`, `<h2 id="b--c">`, `<h2 id="b-c-1">B c</h2>`, `href="#b--c"`, `href="readme.html#top"`, "ls &lt;x&gt;<i>  # said</i>",
			`<a href="a.html" aria-current="page">A</a>`, `<title>A page · Leasehold</title>`,
		},
		"readme.html":      {`href="source/code.html"`, `href="a.html#b-c-1"`},
		"source/code.html": {"package x // &lt;&amp;&gt;", `href="../a.html"`, `src="../site.js"`},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[at], want) {
				t.Errorf("%s lacks %s:\n%s", at, want, pages[at])
			}
		}
	}
	for _, text := range pages {
		if strings.Contains(text, "aside-note") || strings.Contains(text, "unseen") || strings.Contains(text, "package y") {
			t.Errorf("what should stay out is in it:\n%s", text)
		}
	}
}

// Each fault fails the build, and the error says where it is.
func TestFaultsAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"a dead link":              {"docs/a.md", "# A\n\ntext\n[x](b.md)\n", "docs/a.md:4: b.md: there is no docs/b.md"},
		"a dead anchor":            {"docs/a.md", "# A\n\n[x](README.md#gone)\n", "docs/a.md:3: docs/README.md has no heading #gone"},
		"a dead anchor of its own": {"docs/a.md", "# A\n\n- [x](#gone)\n", "docs/a.md:3: docs/a.md has no heading #gone"},
		"in a page that is linked": {"README.md", "# R\n\n[x](SECURITY.md)\n", "SECURITY.md:3: nowhere: there is no nowhere"},
		"a dead image":             {"docs/a.md", "# A\n\n![x](x.svg)\n", "docs/a.md:3: x.svg: there is no docs/x.svg"},
		"a page in no list":        {"docs/b.md", "# B\n", "docs/b.md: it has no row in docs/README.md"},
		"outside the checkout":     {"docs/a.md", "# A\n\n[x](../../)\n", "docs/a.md:3: ../../: there is no .."},
		"from the root":            {"docs/a.md", "# A\n\n[x](/docs/a.md)\n", "want a path from this page"},
		"a script":                 {"docs/a.md", "# A\n\n[x](javascript:alert(1))\n", "want https"},
		"HTML":                     {"docs/a.md", "# A\n\n<script>alert(1)</script>\n", "docs/a.md:3: HTML"},
		"HTML in a line":           {"docs/a.md", "# A\n\nsome <b>text</b>\n", "docs/a.md:3: HTML"},
		"a heading of code":        {"README.md", "# R\n\n[x](code/x.go#L1)\n", "only a page has headings"},
	} {
		t.Run(name, func(t *testing.T) {
			files := sound()
			files["SECURITY.md"] = "# S\n\n[x](nowhere)\n"
			files[c.file] = c.text
			_, err := build(tree(t, files), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestSlugsAreGitHubs(t *testing.T) {
	for words, want := range map[string]string{
		"leasehold list, show, history":       "leasehold-list-show-history",
		"Where is the code that …?":           "where-is-the-code-that-",
		"6. Fencing":                          "6-fencing",
		"A_b-c":                               "a_b-c",
		"Callers: OpenID Connect, Kubernetes": "callers-openid-connect-kubernetes",
		"Für drei Maschinen":                  "für-drei-maschinen",
	} {
		if got := slug(words); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}
