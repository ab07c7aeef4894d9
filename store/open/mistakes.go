package open

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// like returns what a URL of the scheme looks like that people mean by a name; "" if there is none.
func like(name string) string {
	for _, s := range Schemes() {
		if slices.Contains(s.alike, strings.ToLower(name)) {
			return s.Form
		}
	}
	return ""
}

// ofPort returns the scheme of what listens at a port by default, "SCHEME" if that isn't known.
func ofPort(port string) string {
	for _, s := range Schemes() {
		if s.port == port {
			return s.Name
		}
	}
	return unknownScheme
}

const unknownScheme = "SCHEME"

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n < 1<<16
}

// meant returns what a URL of that scheme looks like; "" if there is no such scheme.
func meant(name string) string {
	for _, s := range Schemes() {
		if s.Name == name {
			return s.Form
		}
	}
	return ""
}

// mended adds to what is wrong with a URL what to write instead, where that is known.
func mended(text string, err error) error {
	name, rest, _ := strings.Cut(text, ":")
	switch {
	case !strings.Contains(meant(name), "://"):
		return err
	case !strings.HasPrefix(rest, "//") && !strings.Contains(err.Error(), "://"):
		return fmt.Errorf("%w: %s://%s", err, name, strings.TrimLeft(rest, "/"))
	}
	return cmp.Or(misspelt(rest), err) // err may show the password
}

// misspelt returns an error if a URL has a password with characters that end it there, or nil. rest
// follows the colon after the scheme.
func misspelt(rest string) error {
	i := strings.LastIndex(rest, "@")
	if i < 0 {
		return nil
	}
	_, secret, ok := strings.Cut(strings.TrimPrefix(rest[:i], "//"), ":")
	first := strings.IndexAny(secret, "/#?@")
	if _, err := url.PathUnescape(secret); ok && first < 0 && err != nil {
		first = strings.Index(secret, "%")
	}
	// HOST:PORT/PATH@.
	if !ok || first < 0 || isPort(secret[:first]) && strings.IndexByte("/?", secret[first]) >= 0 {
		return nil
	}
	return fmt.Errorf("its user or password has a %q in it: write %% as %%25, / as %%2F, ? as %%3F, # as %%23, @ as %%40", secret[first])
}

// notThere adds to why a lock server can't be used what may be meant instead.
func notThere(host string, err error) error {
	_, port, _ := net.SplitHostPort(host)
	if scheme := ofPort(port); scheme != unknownScheme && scheme != "http" {
		return fmt.Errorf("%w: %s is the port of %s: write %s://%s", err, port, scheme, scheme, host)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: no lock server listens there: is `leasehold serve` up, and are host and port right?", err)
	}
	if strings.Contains(err.Error(), "no answer of a lock server") {
		return fmt.Errorf("%w: is `leasehold serve` at that address? The URL of a store itself begins with its scheme, as etcd://", err)
	}
	return err
}
