package lessor

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// The errors of a request that does not prove that its sender holds the term.
var (
	ErrSecret   = errors.New("the secret is not that of the term")
	ErrNoSecret = errors.New("the term has no secret: it was granted by an earlier version, or by a program that has the store itself")
)

// The keys of a record's info that a registry writes.
const (
	requestInfo = ".request" // the digest of the request's ID
	secretInfo  = ".secret"  // what remains of the secret: see newSecret
)

// SecretInfo is the key of a record's info under which [NewSecret] is kept.
const SecretInfo = secretInfo

// NewSecret returns a secret, and what the record of the term keeps of it, by which [Secret] knows
// it again. It is for programs that have the store itself.
func NewSecret() (secret, kept string) { return newSecret("") }

// OwnInfo reports whether a key of a record's info is Leasehold's own: no request sets it, and no
// answer shows it.
func OwnInfo(key string) bool { return strings.HasPrefix(key, ".") }

// Shown returns the info of a record without what is Leasehold's own; nil if nothing is left.
func Shown(info map[string]string) map[string]string {
	var shown map[string]string
	for k, v := range info {
		if OwnInfo(k) {
			continue
		}
		if shown == nil {
			shown = make(map[string]string, len(info))
		}
		shown[k] = v
	}
	return shown
}

// Proof returns nil if a request may change the term that a record shows in the name of its holder.
// A nil Proof allows it: that is for the server itself, and for operators.
type Proof func(rec store.Record) error

// Secret returns the [Proof] of a request that carries that secret. Its errors match [ErrSecret] or
// [ErrNoSecret].
func Secret(secret string) Proof {
	return func(rec store.Record) error {
		kept := rec.Info[secretInfo]
		if kept == "" {
			return fmt.Errorf("%s: %w: it ends when it is not renewed, or an operator breaks it", rec.Key, ErrNoSecret)
		}
		if _, sum, ok := readSecret(kept); !ok || !sumOf(secret, sum) {
			return fmt.Errorf("%s: %w: send the one that came with the grant of token %d", rec.Key, ErrSecret, rec.Token)
		}
		return nil
	}
}

// newSecret returns a secret of 128 bits or more, and what the record keeps of it: its hash, by
// which it is known again, and a salt. If the request has an ID the secret is the HMAC of that
// under the salt. So any registry on the store tells it again to who sends the request again. Who
// has the record but not the ID has nothing, and neither has who guesses the ID but has not the
// record.
func newSecret(id string) (secret, kept string) {
	var salt [16]byte
	rand.Read(salt[:]) // never fails
	if secret = rand.Text(); id != "" {
		secret = derived(salt[:], id)
	}
	return secret, keptOf(salt[:], secret)
}

// keptOf is what a record keeps of a secret.
func keptOf(salt []byte, secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(salt) + "." + base64.RawURLEncoding.EncodeToString(sum[:])
}

func readSecret(kept string) (salt, sum []byte, ok bool) {
	a, b, ok := strings.Cut(kept, ".")
	if !ok {
		return nil, nil, false
	}
	salt, err := base64.RawURLEncoding.DecodeString(a)
	sum, other := base64.RawURLEncoding.DecodeString(b)
	return salt, sum, err == nil && other == nil && len(sum) == sha256.Size
}

func derived(salt []byte, id string) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte("secret\x00" + id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:20])
}

func sumOf(secret string, sum []byte) bool {
	have := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(have[:], sum) == 1
}

// idDigest is what a record keeps of a request's ID.
func idDigest(id string) string {
	sum := sha256.Sum256([]byte("request\x00" + id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// secretOf returns the secret of a term that w is granted, and whether w may know it: the term was
// claimed for w, or for the same request sent before.
func (w *waiter) secretOf(rec store.Record) (string, bool) {
	salt, sum, ok := readSecret(rec.Info[secretInfo])
	if !ok {
		return "", false
	}
	if sumOf(w.secret, sum) {
		return w.secret, true
	}
	if w.req.ID == "" || w.req.Secret != "" {
		return "", false
	}
	secret := derived(salt, w.req.ID)
	return secret, sumOf(secret, sum)
}
