package fence

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Errors of texts that are no sequencer, of signatures that don't hold, and of sequencers that are for something else.
var (
	ErrMalformed = errors.New("malformed sequencer")
	ErrForged    = errors.New("sequencer not signed by a known key")
	ErrOtherName = errors.New("sequencer of another lease")
)

// MinKeyBytes is the least length of a key, in bytes.
const MinKeyBytes = 16

// Keys sign sequencers and verify them, so that whoever is given one can pass it on but can't make one up. The first key signs;
// all of them verify, so that keys can be changed without a gap: add the new one as the last everywhere, then make it the
// first, then take the old one out. Holders of a key can sign for any name. A key that is shorter than [MinKeyBytes] neither signs nor
// verifies, so Keys that are empty, or have only such keys, refuse every text; only nil Keys mean that nothing is signed.
type Keys [][]byte

// NewKeys returns keys, or an error when there is none, or one that is too short to be secret.
func NewKeys(keys ...[]byte) (Keys, error) {
	if len(keys) == 0 {
		return nil, errors.New("keys: want at least one")
	}
	for i, k := range keys {
		if len(k) < MinKeyBytes {
			return nil, fmt.Errorf("key %d has %d bytes: want %d or more, at random", i, len(k), MinKeyBytes)
		}
	}
	return Keys(keys), nil
}

// Sign returns the sequencer as text with a signature: HMAC-SHA-256 over the text before it.
func (k Keys) Sign(s Sequencer) (string, error) {
	if len(k) == 0 || len(k[0]) < MinKeyBytes {
		return "", fmt.Errorf("keys: there is none of %d bytes or more to sign with: make them by NewKeys", MinKeyBytes)
	}
	if err := s.Valid(); err != nil {
		return "", err
	}
	text := s.String()
	return text + ";" + mac(k[0], text), nil
}

// Verify reads a signed text. Its error matches [ErrForged] when there is no signature or none of the keys made it, and
// [ErrMalformed] when it is no sequencer at all.
func (k Keys) Verify(text string) (Sequencer, error) {
	s, got, err := split(text)
	if err != nil {
		return Sequencer{}, err
	}
	for _, key := range k {
		if len(key) >= MinKeyBytes && hmac.Equal([]byte(got), []byte(mac(key, s.String()))) {
			return s, nil
		}
	}
	return Sequencer{}, fmt.Errorf("%w: %s", ErrForged, s)
}

func mac(key []byte, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
