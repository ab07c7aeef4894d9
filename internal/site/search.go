package main

import (
	"encoding/json"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// section is what a search finds: a heading, and the text below it.
type section struct {
	Address string `json:"a"`
	Page    string `json:"p"`
	Heading string `json:"h"`
	Text    string `json:"t"`
}

// parts are the sections of a page.
func (s *site) parts(p *page) (all []section) {
	address := s.address(p.path)
	next := section{Address: address, Page: p.title}
	var words []string
	end := func() {
		next.Text = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
		if next.Heading != "" || next.Text != "" {
			all = append(all, next)
		}
		words = nil
	}
	of := map[ast.Node]heading{}
	for _, h := range p.headings {
		of[h.node] = h
	}
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := of[n]
		if !ok {
			words = append(words, plain(n, p.source))
			continue
		}
		end()
		next = section{Address: address + "#" + h.ID, Page: p.title, Heading: h.Text}
		if h.Level == 1 {
			next.Address, next.Heading = address, ""
		}
	}
	end()
	return all
}

func (s *site) sections() (n int) {
	for _, p := range s.order {
		n += len(s.parts(s.pages[p]))
	}
	return n
}

// index is a script, since a browser reads no other file beside a page that it has from a disk. The
// changelog is not in it: it says what was, in the words of what is.
func (s *site) index() ([]byte, error) {
	var all []section
	for _, p := range s.order {
		if p != "CHANGELOG.md" {
			all = append(all, s.parts(s.pages[p])...)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("globalThis.leaseholdIndex = "), data...), ";\n"...), nil
}
