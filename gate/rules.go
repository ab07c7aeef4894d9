package gate

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/httpwrite"
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
	r := rules{kubernetes: o.Preset == Kubernetes}
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

// matchWrite is match for what makes a write of a request: GET stands for HEAD too, which
// frameworks answer by the same code.
func (p pattern) matchWrite(method string, segments []string) bool {
	return p.match(method, segments) || method == http.MethodHead && p.match(http.MethodGet, segments)
}

// write reports whether a request writes. What makes a read of it has to fit exactly; what makes a
// write of it fits an upstream that ignores case and a slash at the end, too.
func (r rules) write(req *http.Request) bool {
	switch {
	case httpwrite.Disguised(req):
		return true
	case !r.kubernetes && len(r.reads) == 0 && len(r.writes) == 0:
		return plainly(req)
	case ambiguous(req.URL):
		return true
	}
	segments := strings.Split(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if len(r.writes) > 0 {
		lower := strings.Split(strings.ToLower(strings.Trim(req.URL.Path, "/")), "/")
		matches := func(p pattern) bool { return p.matchWrite(req.Method, lower) }
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
	case req.Method == http.MethodPost && resource.reviews():
		return httpwrite.Upgrade(req)
	}
	return plainly(req)
}

// plainly reports whether a request writes by all but what patterns say, and what disguises it.
func plainly(req *http.Request) bool {
	return httpwrite.Method(req.Method) || httpwrite.Body(req) || httpwrite.Upgrade(req)
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
