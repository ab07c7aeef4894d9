package fence

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Errors of texts that are no sequencer, of signatures that don't hold, and of sequencers that are
// for something else.
var (
	ErrMalformed = errors.New("malformed sequencer")
	ErrForged    = errors.New("sequencer not signed by a known key")
	ErrOtherName = errors.New("sequencer of another lease")
)

// MinKeyBytes is the least length of a key, in bytes.
const MinKeyBytes = 16

// Keys sign sequencers and verify them, so that a receiver of a sequencer can pass it on but can't
// make one. The first key signs, and all of them verify. So keys can be changed without a gap: add
// the new one as the last everywhere, then make it the first, then remove the old one. Holders of a
// key can sign for any name.
//
// A key that is shorter than [MinKeyBytes] neither signs nor verifies. So Keys that are empty, or
// have only such keys, refuse every text. Only nil Keys mean that nothing is signed.
type Keys struct{ keys [][]byte }

// NewKeys returns keys, or an error when there is none, or one that is too short to be secret: less
// than [MinKeyBytes].
func NewKeys(keys ...[]byte) (*Keys, error) {
	if len(keys) == 0 {
		return nil, errors.New("keys: want at least one")
	}
	k := &Keys{}
	for i, key := range keys {
		if len(key) < MinKeyBytes {
			return nil, fmt.Errorf("key %d has %d bytes: want %d or more, at random", i, len(key), MinKeyBytes)
		}
		k.keys = append(k.keys, bytes.Clone(key))
	}
	return k, nil
}

// Sign returns the sequencer as text with a signature: HMAC-SHA-256 over the text before it.
func (k *Keys) Sign(s Sequencer) (string, error) {
	if k == nil || len(k.keys) == 0 {
		return "", errors.New("keys: there is none to sign with: make them by NewKeys")
	}
	if err := s.Valid(); err != nil {
		return "", err
	}
	text := s.String()
	return text + ";" + mac(k.keys[0], text), nil
}

// Verify reads a signed text. Its error matches [ErrForged] when there is no signature or none of
// the keys made it. It matches [ErrMalformed] when the text is not a sequencer.
func (k *Keys) Verify(text string) (Sequencer, error) {
	s, got, err := split(text)
	if err != nil {
		return Sequencer{}, err
	}
	if k != nil {
		for _, key := range k.keys {
			if hmac.Equal([]byte(got), []byte(mac(key, s.String()))) {
				return s, nil
			}
		}
	}
	return Sequencer{}, fmt.Errorf("%w: %s", ErrForged, s)
}

func mac(key []byte, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
