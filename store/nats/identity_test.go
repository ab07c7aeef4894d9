package nats

import (
	"encoding/base64"
	"fmt"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/driver"
)

// TestInspectSaysWhoWeAre: by each of the ways to say so, and without a permission for it.
func TestInspectSaysWhoWeAre(t *testing.T) {
	plain := servers.NATS(t, servers.Shared())
	users := servers.NATS(t, servers.Password("right-secret"))
	token := servers.NATS(t, servers.Set("authorization", `{ token: "right-secret" }`))
	for what, c := range map[string]struct {
		js   jetstream.JetStream
		want string
	}{
		"nobody":            {dial(t, plain.Addr), "authentication is off: everybody who reaches the server may change every lease"},
		"needless":          {dial(t, plain.Addr, natsgo.UserInfo("ada", "p")), "authentication is off: everybody who reaches the server may change every lease"},
		"user":              {dial(t, users.Addr, natsgo.UserInfo("leasehold", "right-secret")), "user leasehold"},
		"user in the URL":   {dial(t, "leasehold:right-secret@"+users.Addr), "user leasehold"},
		"token":             {dial(t, token.Addr, natsgo.Token("right-secret")), "everybody who knows the token"},
		"token in the URL":  {dial(t, "right-secret@"+token.Addr), "everybody who knows the token"},
		"token of a caller": {dial(t, token.Addr, natsgo.TokenHandler(func() string { return "right-secret" })), "everybody who knows the token"},
	} {
		s := open(t, c.js, newBucket(t, c.js, 1))
		var got driver.Finding
		for _, f := range s.Inspect(t.Context()) {
			if f.What == "identity" {
				got = f
			}
		}
		if got.Status != driver.StatusOK || got.Detail != c.want {
			t.Errorf("%s: %+v, want %q", what, got, c.want)
		}
	}
}

func TestNameInJWT(t *testing.T) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"name":"billing","sub":"UABC","iss":"AABC"}`))
	for token, want := range map[string]string{
		fmt.Sprintf("e30.%s.c2ln", claims): "the user of the JWT billing UABC",
		"":                                 "the user of the JWT",
		"no.jwt":                           "the user of the JWT",
		"e30.%.c2ln":                       "the user of the JWT",
	} {
		if got := nameInJWT(token); got != want {
			t.Errorf("%q: %q, want %q", token, got, want)
		}
	}
}
