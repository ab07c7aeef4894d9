// Package keyspace says what a name may be, and which keys of a store Leasehold keeps for itself.
package keyspace

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// reserved begins the keys that Leasehold keeps for itself.
const reserved = "."

// SessionPrefix begins the keys of session records.
const SessionPrefix = reserved + "session/"

// Reserved reports whether key is one that Leasehold keeps for itself, such as a session's record.
func Reserved(key string) bool { return strings.HasPrefix(key, reserved) }

// CheckName returns a *[store.InvalidError] unless key may be the name of a lease.
func CheckName(key string) error {
	if Reserved(key) {
		return &store.InvalidError{Field: "Key", Value: fmt.Sprintf("%.40q", key), Want: "a name that does not begin with a dot: those are Leasehold's own"}
	}
	return driver.CheckKey(key)
}

// SessionKey returns the key for the record of a session of that owner; nonce was never used
// before. The nonce is written in lower case: where names of objects are that, as on Kubernetes,
// each upper-case letter takes four.
func SessionKey(owner, nonce string) string {
	return SessionPrefix + owner + "/" + strings.ToLower(nonce)
}

// OwnerOf returns the owner id of the manager that opened the session of that key, or "" if it is
// no session's key.
func OwnerOf(sessionKey string) string {
	owner, ok := strings.CutPrefix(sessionKey, SessionPrefix)
	if i := strings.LastIndex(owner, "/"); ok && i >= 0 {
		return owner[:i]
	}
	return ""
}
