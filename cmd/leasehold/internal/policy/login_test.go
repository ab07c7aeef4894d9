package policy

import (
	"fmt"
	"strings"
	"testing"
)

// What is wrong with a login names the field, the value and what is wanted.
func TestLoginOfAnIssuer(t *testing.T) {
	for login, says := range map[string]string{
		"{client_id: x}":                        "",
		"{client_id: x, scopes: groups openid}": "",
		"{client_id: y, token: access_token}":   "",
		"{client_id: y, token: access_token, resource: 'https://leases', audience: x}": "",
		"{scopes: openid}":                                             "issuer https://a: login: client_id: want",
		"{client_id: x, scopes: groups}":                               `scopes "groups": want openid`,
		"{client_id: x, token: jwt}":                                   `token "jwt": want id_token or access_token`,
		"{client_id: y}":                                               `client_id "y": want the issuer's audience, "x"`,
		"{client_id: x, audience: api}":                                `audience "api"`,
		"{client_id: y, token: access_token, resource: leases}":        `resource "leases": want an absolute URI`,
		"{client_id: y, token: access_token, resource: 'https://a#b'}": "want an absolute URI",
		"{client_id: x, secret: y}":                                    "field secret not found",
	} {
		_, err := parsed(fmt.Sprintf("issuers: [{issuer: 'https://a', audience: x, login: %s}]\nanonymous: [{actions: [read], names: ['*']}]", login))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", login, err, says)
		}
	}
}
