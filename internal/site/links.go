package main

import (
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

func itoa(n int) string { return strconv.Itoa(n) }

// target finds what a link of a page leads to. It is "" for what is outside.
func (s *site) target(p *page, line int, to string) (file, fragment string, folder bool) {
	u, err := url.Parse(to)
	if err != nil {
		s.complain(p, line, "%s: %v", to, err)
		return "", "", false
	}
	if u.Scheme != "" {
		if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "mailto" {
			s.complain(p, line, "%s: want https, or a path from this page", to)
		}
		return "", "", false
	}
	if strings.HasPrefix(u.Path, "/") || u.Host != "" {
		s.complain(p, line, "%s: want a path from this page", to)
		return "", "", false
	}
	file = p.path
	if u.Path != "" {
		file = path.Join(path.Dir(p.path), u.Path)
	}
	info, err := os.Stat(s.file(file))
	if err != nil || strings.HasPrefix(file, "..") {
		s.complain(p, line, "%s: there is no %s", to, file)
		return "", "", false
	}
	s.links++
	return file, u.Fragment, info.IsDir()
}

// link has a link lead to the page of the site, and notes what has to be there.
func (s *site) link(p *page, n ast.Node, destination *[]byte) {
	line := p.line(n)
	file, fragment, folder := s.target(p, line, string(*destination))
	switch {
	case file == "":
		return
	case !folder && path.Ext(file) == ".md":
		s.add(file)
		n.SetAttributeString("page", item{Path: file, Fragment: fragment})
		if fragment != "" {
			p.wanted = append(p.wanted, wanted{line, file, fragment})
		}
	case image(file):
		s.images[file] = true
	case fragment != "":
		s.complain(p, line, "%s: only a page has headings", *destination)
	default:
		s.sources[file] = true
	}
	way := relative(s.address(p.path), s.address(file))
	switch {
	case fragment != "" && file == p.path:
		way = "#" + fragment
	case fragment != "":
		way += "#" + fragment
	}
	*destination = []byte(way)
}

func image(file string) bool {
	switch path.Ext(file) {
	case ".svg", ".png":
		return true
	}
	return false
}

func (s *site) image(p *page, n *ast.Image) {
	line := p.line(n)
	if file, _, _ := s.target(p, line, string(n.Destination)); file != "" {
		if !image(file) {
			s.complain(p, line, "%s: want .svg or .png", n.Destination)
			return
		}
		s.images[file] = true
		n.Destination = []byte(relative(s.address(p.path), s.address(file)))
	}
}

// anchors complains of links to headings that aren't there.
func (s *site) anchors(p *page) {
	for _, w := range p.wanted {
		if !s.pages[w.page].ids[w.id] {
			s.complain(p, w.line, "%s has no heading #%s", w.page, w.id)
		}
	}
}
