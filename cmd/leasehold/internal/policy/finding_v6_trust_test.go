package policy

import (
	"strings"
	"testing"
)

// Nobody whose tokens are trusted can give a caller the name of another: neither of one that another gives, nor of one with a token.
func TestFinding_V6_NamesOfTwoAreNotOne(t *testing.T) {
	const allow = "allow: [{actions: [read], names: ['*']}]"
	two := func(a, b string) string {
		return "issuers: [{issuer: 'https://a', audience: x" + a + "}, {issuer: 'https://b', audience: x" + b + "}]\ncallers: [{name: c, subjects: ['https://a#*', 'a:*'], " + allow + "}]"
	}
	for text, says := range map[string]string{
		two(", prefix: 'a:'", ", prefix: 'a:'"):  `issuer https://b: prefix "a:"`,
		two(", prefix: 'a:'", ", prefix: 'a:b'"): `issuer https://b: prefix "a:b"`,
		two(", prefix: 'a:b'", ", prefix: 'a:'"): `issuer https://b: prefix "a:"`,
		"issuers: [{issuer: 'https://a', audience: x, prefix: 'system:serviceaccount:'}]\nkubernetes: {audience: x}\ncallers: [{name: c, roles: ['system:x'], " + allow + "}]": "kubernetes has",
		"issuers: [{issuer: 'https://a', audience: x, prefix: 'a:'}]\ncallers: [{name: 'a:root', certificates: [x], " + allow + "}]":                                           "caller a:root: the name begins with a:",
		"issuers: [{issuer: 'https://a', audience: x, prefix: 'a:'}, {issuer: 'https://a', audience: y, prefix: 'b:'}]\ncallers: [{name: c, roles: ['a:x'], " + allow + "}]":   "is there twice",
		"issuers: [{audience: x}]": "issuers: the one with the number 1 has no issuer",
		"issuers: [{issuer: 'https://a', audience: x}]\ncallers: [{name: c, subjects: ['*'], " + allow + "}]":             "nobody is called so",
		"issuers: [{issuer: 'https://a', audience: x}]\ncallers: [{name: c, subjects: ['https://a#x*y'], " + allow + "}]": "one * is allowed at the end",
		"issuers: [{issuer: 'https://a', audience: x}]\ncallers: [{name: c, roles: ['https://a#*'], " + allow + "}]":      `roles "https://a#*"`,
		"callers: [{name: c, subjects: ['system:serviceaccount:prod:web'], " + allow + "}]":                               "nobody is called so",
	} {
		if text == "issuers: [{audience: x}]" {
			text += "\nanonymous: [{actions: [read], names: ['*']}]"
		}
		if _, err := parsed(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", text, err, says)
		}
	}
	if _, err := parsed("issuers: [{issuer: 'https://a', audience: x}, {issuer: 'https://b', audience: x}]\nkubernetes: {audience: x}\n" +
		"callers: [{name: c, subjects: ['https://a#*', 'system:serviceaccount:prod:*'], roles: ['system:serviceaccounts:prod'], " + allow + "}]"); err != nil {
		t.Error(err)
	}
}
