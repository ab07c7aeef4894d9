package nats

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold/store/driver"
)

// inspectIdentity says as whom the server let us in. It doesn't ask the server, since that takes a
// permission that nothing else needs, and a refusal would be taken for the cause of whatever fails
// next.
func (s *Store) inspectIdentity() driver.Finding {
	f := driver.Finding{What: "identity", Status: driver.StatusOK}
	// In the order in which the client chooses between them. The URL is that of the server at hand.
	options := &s.conn.Opts
	at, err := url.Parse(s.conn.ConnectedUrl())
	if err != nil || at.User == nil {
		at = &url.URL{}
	}
	_, password := at.User.Password()
	switch {
	case !s.conn.AuthRequired():
		f.Detail = "authentication is off: everybody who reaches the server may change every lease"
	case options.UserJWT != nil:
		token, err := options.UserJWT()
		if f.Detail = nameInJWT(token); err != nil {
			f.Status, f.Detail, f.Advice = driver.StatusWarn, err.Error(), "check the file of credentials: the next connection will fail"
		}
	case at.User != nil && password:
		f.Detail = "user " + at.User.Username()
	case at.User != nil:
		f.Detail = "everybody who knows the token"
	case options.Nkey != "":
		f.Detail = "the user with the key " + options.Nkey
	case options.User != "":
		f.Detail = "user " + options.User
	case options.Token != "" || options.TokenHandler != nil:
		f.Detail = "everybody who knows the token"
	default:
		f.Detail = "as the client's certificate or its callbacks say"
	}
	return f
}

// nameInJWT returns whom a user's JWT names, for people.
func nameInJWT(token string) string {
	var claims struct{ Name, Sub string }
	parts := strings.Split(token, ".")
	if len(parts) == 3 {
		if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(text, &claims) // what isn't there isn't said
		}
	}
	return strings.TrimSpace("the user of the JWT " + claims.Name + " " + claims.Sub)
}
