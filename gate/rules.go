package gate

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// rules say which requests write.
type rules struct {
	reads, writes []pattern
	kubernetes    bool
}

// pattern is what a text such as "POST /search/**" says.
type pattern struct {
	method   string // "*" is any
	segments []string
	rest     bool // any number of segments may follow
}

const wantPattern = `want "METHOD /path": METHOD may be *, a segment of the path may contain *, and the last one may be **`

func newRules(o Options) (rules, error) {
	r := rules{kubernetes: o.Kubernetes}
	for _, kind := range []struct {
		field string
		texts []string
		to    *[]pattern
		lower bool
	}{{"Reads", o.Reads, &r.reads, false}, {"Writes", o.Writes, &r.writes, true}} {
		for _, text := range kind.texts {
			p, err := parsePattern(text, kind.lower)
			if err != nil {
				return rules{}, fmt.Errorf("gate: %s %q: %w", kind.field, text, err)
			}
			*kind.to = append(*kind.to, p)
		}
	}
	return r, nil
}

// parsePattern reads a pattern; lower is for those that are compared without regard to case.
func parsePattern(text string, lower bool) (pattern, error) {
	method, p, ok := strings.Cut(text, " ")
	if !ok || method == "" || method != strings.ToUpper(method) || !strings.HasPrefix(p, "/") || strings.ContainsAny(p, " ?#") {
		return pattern{}, fmt.Errorf("%s", wantPattern)
	}
	if lower {
		p = strings.ToLower(p)
	}
	segments := strings.Split(p[1:], "/")
	last := len(segments) - 1
	rest := segments[last] == "**"
	if rest {
		segments = segments[:last]
	}
	for _, s := range segments {
		if _, err := path.Match(s, ""); err != nil || strings.Contains(s, "**") {
			return pattern{}, fmt.Errorf("segment %q: %s", s, wantPattern)
		}
	}
	return pattern{method, segments, rest}, nil
}

func (p pattern) match(method string, segments []string) bool {
	if p.method != "*" && p.method != method || len(segments) < len(p.segments) || !p.rest && len(segments) > len(p.segments) {
		return false
	}
	for i, want := range p.segments {
		if ok, _ := path.Match(want, segments[i]); !ok { // the pattern was checked
			return false
		}
	}
	return true
}

// write reports whether a request writes. What makes a read of it has to fit exactly; what makes a write of it fits an upstream
// that ignores case and a slash at the end, too.
func (r rules) write(req *http.Request) bool {
	switch {
	case overridden(req):
		return true
	case !r.kubernetes && len(r.reads) == 0 && len(r.writes) == 0:
		return upgrade(req) || !readMethod(req.Method)
	case ambiguous(req.URL):
		return true
	}
	segments := strings.Split(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if len(r.writes) > 0 {
		lower := strings.Split(strings.ToLower(strings.Trim(req.URL.Path, "/")), "/")
		matches := func(p pattern) bool { return p.match(req.Method, lower) }
		if slices.ContainsFunc(r.writes, matches) {
			return true
		}
	}
	resource := kubernetesPath{}
	if r.kubernetes {
		resource = parseKubernetes(req.URL.Path)
	}
	matches := func(p pattern) bool { return p.match(req.Method, segments) }
	switch {
	case resource.connects():
		return true
	case slices.ContainsFunc(r.reads, matches):
		return false
	case upgrade(req):
		return true
	case req.Method == http.MethodPost && resource.reviews():
		return false
	}
	return !readMethod(req.Method)
}

func readMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// upgrade reports whether a request wants to go on in another protocol. HTTP/2 is none: the offer to go on in it is not passed on.
func upgrade(r *http.Request) bool {
	to := r.Header.Get("Upgrade")
	return to != "" && !strings.EqualFold(to, schemeH2C)
}

// overrides are headers that have some frameworks take another method than the request's own, and methodParameter is a
// parameter that has.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

const methodParameter = "_method"

// overridden reports whether a request asks to be taken for one whose method writes.
func overridden(r *http.Request) bool {
	for _, name := range overrides {
		for _, method := range r.Header[name] {
			if !readMethod(strings.ToUpper(strings.TrimSpace(method))) {
				return true
			}
		}
	}
	if !strings.ContainsAny(r.URL.RawQuery, "_%") {
		return false
	}
	for name, methods := range r.URL.Query() {
		writes := func(method string) bool { return !readMethod(strings.ToUpper(method)) }
		if strings.EqualFold(name, methodParameter) && slices.ContainsFunc(methods, writes) {
			return true
		}
	}
	return false
}

// ambiguous reports whether a path can be read in two ways, by the gate and by the upstream.
func ambiguous(u *url.URL) bool {
	p := u.Path
	if u.RawPath != "" {
		raw := strings.ToLower(u.RawPath)
		if strings.Contains(raw, "%2f") || strings.Contains(raw, "%5c") {
			return true
		}
	}
	if strings.ContainsAny(p, "\\;%") || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' }) {
		return true
	}
	clean := path.Clean(p)
	return p != clean && p != clean+"/"
}
