package driver

import "strings"

// foreignNonce begins the nonce that an engine gives a record which another program wrote.
const foreignNonce = "foreign/"

// ForeignNonce returns the nonce of a record that another program wrote, in a format that an engine shares with it. sign is
// what that program changes whenever it renews.
func ForeignNonce(sign string) string { return foreignNonce + sign }

// Foreign reports whether another program wrote the record with this nonce.
func Foreign(nonce string) bool { return nonce == "" || strings.HasPrefix(nonce, foreignNonce) }
