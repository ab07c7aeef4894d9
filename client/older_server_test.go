package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// older is a server of a version that knows no kinds: it reads a record, and writes it without what it doesn't know.
type older struct{ t *testing.T }

func (o older) RoundTrip(q *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	rec, err := driver.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	rec.Key, rec.Version, rec.Kind = "job", "1", ""
	line, err := api.NewRecordLine(rec)
	if err != nil {
		return nil, err
	}
	body := `{"key":"job","version":"1","record":` + string(line.Record) + `}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Request: q,
	}, nil
}

// What several share has its holders in a record whose kind says so. Where a server drops the kind, nobody holds a share; the caller
// learns it at once, and does not try for ever. What one at a time holds needs no kind.
func TestOlderServerDropsKinds(t *testing.T) {
	c, err := newConn("http://127.0.0.1:1", Options{HTTP: &http.Client{Transport: older{t}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{conn: c}
	defer func() { _ = s.Close() }()
	for kind, refused := range map[store.Kind]bool{
		"": false, store.KindLease: false, store.KindElection: false, store.KindPool: false, store.KindRW: true, store.KindSemaphore: true,
	} {
		_, err := s.Put(t.Context(), store.Record{Key: "job", Kind: kind, Nonce: "n"})
		if errors.Is(err, store.ErrInvalid) != refused || err != nil && !strings.Contains(err.Error(), "upgrade the server before its callers") {
			t.Errorf("%q: %v", kind, err)
		}
	}
}
