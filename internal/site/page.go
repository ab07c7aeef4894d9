package main

import (
	"bytes"
	"os"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is what GitHub reads, so far as the pages use it. It leaves HTML out.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 10))),
)

// page is one file of Markdown.
type page struct {
	path     string
	title    string
	source   []byte
	doc      ast.Node
	headings []heading
	ids      map[string]bool
	wanted   []wanted // anchors of pages, checked once all pages are read
}

type heading struct {
	Level  int
	Text   string
	ID     string
	node   ast.Node
	Nested bool // below another one in the list of contents
}

// wanted is a link to a heading.
type wanted struct {
	line     int
	page, id string
}

// read parses a page, gives its headings the ids that GitHub gives them, and turns its links.
func (s *site) read(name string) error {
	source, err := os.ReadFile(s.file(name))
	if err != nil {
		return err
	}
	p := &page{path: name, title: path.Base(name), source: source, ids: map[string]bool{}}
	p.doc = markdown.Parser().Parse(text.NewReader(source))
	s.pages[name] = p
	var gone []ast.Node
	err = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.heading(n)
		case *ast.Link:
			s.link(p, n, &n.Destination)
		case *ast.Image:
			s.image(p, n)
		case *ast.HTMLBlock, *ast.RawHTML:
			if !comment(n, source) {
				s.complain(p, p.line(n), "HTML: write it in Markdown")
			}
			gone = append(gone, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range gone {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	return err
}

func comment(n ast.Node, source []byte) bool {
	var html []byte
	if raw, ok := n.(*ast.RawHTML); ok {
		html = raw.Segments.Value(source)
	} else {
		html = n.Lines().Value(source)
	}
	return bytes.HasPrefix(bytes.TrimSpace(html), []byte("<!--"))
}

func (p *page) heading(n *ast.Heading) {
	words := plain(n, p.source)
	id := slug(words)
	for base, i := id, 1; p.ids[id]; i++ {
		id = base + "-" + itoa(i)
	}
	p.ids[id] = true
	n.SetAttributeString("id", []byte(id))
	if n.Level == 1 && len(p.headings) == 0 {
		p.title = words
	}
	p.headings = append(p.headings, heading{Level: n.Level, Text: words, ID: id, node: n, Nested: n.Level > 2})
}

// contents are the headings that the list beside the page shows.
func (p *page) contents() []heading {
	var all []heading
	for _, h := range p.headings {
		if h.Level == 2 || h.Level == 3 {
			all = append(all, h)
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// groups reads the sidebar from the map: its sections, and the pages that their tables link to.
func (p *page) groups() (all []group) {
	listed := map[item]bool{}
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 2 {
			all = append(all, group{Title: plain(h, p.source)})
			continue
		}
		if len(all) == 0 {
			continue
		}
		g := &all[len(all)-1]
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			link, ok := n.(*ast.Link)
			if !ok || !entering {
				return ast.WalkContinue, nil
			}
			if to, ok := link.AttributeString("page"); ok && !listed[to.(item)] {
				listed[to.(item)] = true
				words := plain(link, p.source)
				g.Items = append(g.Items, item{strings.ToUpper(words[:1]) + words[1:], to.(item).Path, to.(item).Fragment})
			}
			return ast.WalkContinue, nil
		})
	}
	return all
}

// plain is the text of a node, without its form.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				out.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				out.Write(n.Label(source))
			}
		default:
			if n.Type() == ast.TypeBlock {
				if entering && (n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock) {
					out.Write(n.Lines().Value(source))
				}
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(out.String())
}

// slug is the id that GitHub makes of a heading.
func slug(words string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, words)
}

// line is where in its file a node begins, from 1.
func (p *page) line(n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			return 1 + bytes.Count(p.source[:n.Lines().At(0).Start], []byte("\n"))
		}
		if t, ok := n.FirstChild().(*ast.Text); ok {
			return 1 + bytes.Count(p.source[:t.Segment.Start], []byte("\n"))
		}
	}
	return 1
}

func (s *site) html(p *page) ([]byte, error) {
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, p.source, p.doc); err != nil {
		return nil, err
	}
	// Code and text have no such tags: they are escaped.
	body := bytes.ReplaceAll(out.Bytes(), []byte("<table>"), []byte(`<div class="table" tabindex="0"><table>`))
	// A heading that says nothing.
	body = bytes.ReplaceAll(body, []byte("<th></th>"), []byte("<td></td>"))
	return bytes.ReplaceAll(body, []byte("</table>"), []byte("</table></div>")), nil
}
