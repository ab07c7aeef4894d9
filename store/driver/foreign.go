package driver

import "strings"

// foreignNonce begins the nonce that an engine gives a record which another program wrote.
const foreignNonce = "foreign/"

// ForeignNonce returns the nonce that an engine gives a record which another program wrote. The two
// share the record's format. sign is a value that the program changes at each renewal.
func ForeignNonce(sign string) string { return foreignNonce + sign }

// Foreign reports whether another program wrote the record that has this nonce.
func Foreign(nonce string) bool { return nonce == "" || strings.HasPrefix(nonce, foreignNonce) }
