package shardmap

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// MaxNews is of how many changes [News] tells.
const MaxNews = 64

// News is which chunks have changed lately, where the store doesn't push. It is a hint: a change
// may come without one.
type News struct {
	Format int    `json:"v"`
	Series string `json:"s,omitempty"` // another one when the record was made again
	Last   int    `json:"n"`           // how many changes there were in the series
	Chunks []int  `json:"c,omitempty"` // of the last MaxNews of them, the newest last
}

// ParseNews reads the record of the news. One that isn't stored tells of nothing. The error matches
// [store.ErrCorrupt].
func ParseNews(rec store.Record) (News, error) {
	n := News{Format: Format}
	if len(rec.Data) == 0 {
		return n, nil
	}
	if err := json.Unmarshal(rec.Data, &n); err != nil {
		return News{}, driver.Corrupt(rec.Key, err)
	}
	if n.Format != Format || n.Last < len(n.Chunks) {
		return News{}, driver.Corrupt(rec.Key, fmt.Errorf("format %d with %d of %d changes: this version reads format %d", n.Format, len(n.Chunks), n.Last, Format))
	}
	return n, nil
}

// Add adds changes.
func (n *News) Add(chunks ...int) {
	if n.Series == "" {
		n.Series = rand.Text()
	}
	n.Format, n.Last = Format, n.Last+len(chunks)
	n.Chunks = append(n.Chunks, chunks...)
	n.Chunks = n.Chunks[max(0, len(n.Chunks)-MaxNews):]
}

// Since returns the chunks that have changed since the earlier news; false if it can't tell, and
// all may have.
func (n News) Since(earlier News) ([]int, bool) {
	missed := n.Last - earlier.Last
	if n.Series != earlier.Series || missed < 0 || missed > len(n.Chunks) {
		return nil, false
	}
	return n.Chunks[len(n.Chunks)-missed:], true
}

// Marshal returns the data of the record.
func (n News) Marshal() ([]byte, error) { return json.Marshal(n) }
