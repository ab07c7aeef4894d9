// Package httpwrite says which HTTP requests may change something: the one rule of the gate and of
// the fence for handlers. It errs towards a write: what a program may read in another way than this
// package is one.
package httpwrite

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Request reports whether a request may change something: by its method, its body, by asking for
// another protocol, or by what [Disguised] finds.
func Request(r *http.Request) bool {
	return Method(r.Method) || Body(r) || Upgrade(r) || Disguised(r)
}

// Method reports whether a method writes: all do but GET, HEAD, OPTIONS and TRACE, in capitals.
func Method(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}

// Body reports whether a request of a method that reads brings a body. A program that doesn't
// expect one leaves it on the connection, and runs it as the next request. A body whose length
// isn't known may be empty, and counts.
func Body(r *http.Request) bool { return !Method(r.Method) && HasBody(r) }

// HasBody reports whether a request that a server has received brings a body, or may.
func HasBody(r *http.Request) bool { return r.ContentLength != 0 }

// H2C is the protocol by which HTTP/1 offers HTTP/2 without TLS.
const H2C = "h2c"

// Upgrade reports whether a request wants to continue in another protocol than HTTP. An offer of
// [H2C] alone is none, since it isn't to be passed on: see [OffersH2C].
func Upgrade(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Upgrade"], func(to string) bool { return to != "" && !strings.EqualFold(to, H2C) })
}

// OffersH2C reports whether a request offers to continue in HTTP/2. Who passes that on loses sight
// of the requests after it.
func OffersH2C(r *http.Request) bool {
	for _, list := range r.Header["Upgrade"] {
		for to := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(to), H2C) {
				return true
			}
		}
	}
	return false
}

// overrides are headers that have some frameworks take another method than the request's own, and
// methodParameter is a parameter that has.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

const methodParameter = "_method"

// Override reports whether a header of that name, in its canonical spelling, has frameworks take
// another method.
func Override(name string) bool { return slices.Contains(overrides, name) }

// Disguised reports whether a request asks to be taken for one whose method writes, or may ask so
// in a query that can't be read in one way only.
func Disguised(r *http.Request) bool {
	for _, name := range overrides {
		if slices.ContainsFunc(r.Header[name], writes) {
			return true
		}
	}
	// All that a query without these can say is plain.
	if !strings.ContainsAny(r.URL.RawQuery, "_.%;+ ") {
		return false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || strings.Contains(r.URL.RawQuery, " ") {
		return true
	}
	for name, methods := range query {
		if parameter(name) && slices.ContainsFunc(methods, writes) {
			return true
		}
	}
	return false
}

func writes(method string) bool { return Method(strings.ToUpper(strings.TrimSpace(method))) }

// parameter reports whether a program may take a parameter's name for that of the method. PHP reads
// dots and spaces as underscores, and what comes before a bracket as the name.
func parameter(name string) bool {
	name, _, _ = strings.Cut(strings.TrimSpace(name), "[")
	return strings.EqualFold(strings.Map(func(c rune) rune {
		if c == '.' || c == ' ' {
			return '_'
		}
		return c
	}, name), methodParameter)
}
