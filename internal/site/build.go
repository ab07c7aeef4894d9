package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// theMap is the page that lists all others, and the first one of the site.
const theMap = "docs/README.md"

//go:embed layout.html site.css site.js
var files embed.FS

var layout = template.Must(template.ParseFS(files, "layout.html"))

// site is one that is being made. Paths are those of the checkout, with slashes.
type site struct {
	root    string
	into    string
	pages   map[string]*page // by path
	order   []string         // of pages, as they were found
	sources map[string]bool  // files and folders, which pages link to
	images  map[string]bool
	groups  []group
	links   int
	wrong   []error
}

// group is a part of the sidebar, a section of the map.
type group struct {
	Title string
	Items []item
}

type item struct {
	Title, Path, Fragment string
}

// made says what was written.
type made struct {
	pages, sources, links, sections int
}

func (m made) String() string {
	return fmt.Sprintf("%d pages with %d sections, %d pages of code, %d links within the site", m.pages, m.sections, m.sources, m.links)
}

// build writes the site of the checkout in root into a folder. The error names every dead link.
func build(root, into string) (made, error) {
	s := &site{root: root, into: into, pages: map[string]*page{}, sources: map[string]bool{}, images: map[string]bool{}}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		return made{}, errors.Join(fmt.Errorf("%s: there is no docs/*.md: want a checkout", root), err)
	}
	s.add(theMap)
	for _, doc := range docs {
		s.add("docs/" + filepath.Base(doc))
	}
	s.add("README.md")
	for i := 0; i < len(s.order); i++ { //nolint:intrange // it grows: a page that is linked to is read, too
		if err := s.read(s.order[i]); err != nil {
			return made{}, err
		}
	}
	for _, p := range s.order {
		s.anchors(s.pages[p])
	}
	s.groups = s.pages[theMap].groups()
	s.mapped()
	if len(s.wrong) > 0 {
		return made{}, errors.Join(s.wrong...)
	}
	if err := s.write(); err != nil {
		return made{}, err
	}
	return made{len(s.pages), len(s.sources), s.links, s.sections()}, nil
}

func (s *site) add(p string) {
	if _, there := s.pages[p]; !there {
		s.pages[p] = nil
		s.order = append(s.order, p)
	}
}

func (s *site) file(p string) string { return filepath.Join(s.root, filepath.FromSlash(p)) }

func (s *site) complain(p *page, line int, format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf("%s:%d: %s", p.path, line, fmt.Sprintf(format, args...)))
}

// mapped complains of pages of docs/ that the map doesn't list.
func (s *site) mapped() {
	listed := map[string]bool{theMap: true}
	for _, g := range s.groups {
		for _, i := range g.Items {
			listed[i.Path] = listed[i.Path] || i.Fragment == ""
		}
	}
	for _, p := range s.order {
		if strings.HasPrefix(p, "docs/") && !listed[p] {
			s.wrong = append(s.wrong, fmt.Errorf("%s: it has no row in %s: add it there", p, theMap))
		}
	}
}

// address returns where a page, or a page of code, is in the site.
func (s *site) address(p string) string {
	switch {
	case p == theMap:
		return "index.html"
	case path.Dir(p) == "docs" && path.Ext(p) == ".md":
		return strings.TrimSuffix(path.Base(p), ".md") + ".html"
	case path.Dir(p) == "." && path.Ext(p) == ".md":
		return strings.ToLower(strings.TrimSuffix(p, ".md")) + ".html"
	case s.images[p]:
		return path.Base(p)
	}
	return "source/" + p + ".html"
}

// relative returns the way from one address to another.
func relative(from, to string) string {
	way, err := filepath.Rel(path.Dir("/"+from), "/"+to)
	if err != nil {
		return to // both begin with a slash, so there is a way
	}
	return filepath.ToSlash(way)
}

// view is what the layout shows.
type view struct {
	Title, Up, Path string
	Groups          []shownGroup
	Contents        []heading
	Body            template.HTML
}

type shownGroup struct {
	Title string
	Items []shownItem
}

type shownItem struct {
	Title, Link string
	Here        bool
}

func (s *site) show(p, title string, contents []heading, body []byte) error {
	at := s.address(p)
	// Made of escaped text.
	v := view{Title: title, Path: p, Contents: contents, Body: template.HTML(body)}
	v.Up = strings.Repeat("../", strings.Count(at, "/"))
	for _, g := range s.groups {
		shown := shownGroup{Title: g.Title}
		for _, i := range g.Items {
			here := i.Path == p && i.Fragment == ""
			link := relative(at, s.address(i.Path))
			if i.Fragment != "" {
				link += "#" + i.Fragment
			}
			shown.Items = append(shown.Items, shownItem{i.Title, link, here})
		}
		v.Groups = append(v.Groups, shown)
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return err
	}
	return s.put(at, out.Bytes())
}

func (s *site) put(at string, data []byte) error {
	name := filepath.Join(s.into, filepath.FromSlash(at))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

func (s *site) write() error {
	for _, p := range s.order {
		body, err := s.html(s.pages[p])
		if err != nil {
			return err
		}
		if err := s.show(p, s.pages[p].title, s.pages[p].contents(), body); err != nil {
			return err
		}
	}
	for _, p := range sorted(s.sources) {
		body, err := s.code(p)
		if err != nil {
			return err
		}
		if err := s.show(p, p, nil, body); err != nil {
			return err
		}
	}
	for _, p := range sorted(s.images) {
		data, err := os.ReadFile(s.file(p))
		if err != nil {
			return err
		}
		if err := s.put(s.address(p), data); err != nil {
			return err
		}
	}
	for _, name := range []string{"site.css", "site.js"} {
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.put(name, data); err != nil {
			return err
		}
	}
	index, err := s.index()
	if err != nil {
		return err
	}
	return s.put("search-index.js", index)
}

func sorted(set map[string]bool) []string {
	var all []string
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
