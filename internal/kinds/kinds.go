// Package kinds tells who uses a name that several may use at a time, from the records that list
// the users. Package protocol has to know the users before it takes a name that was of another
// kind.
package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The keys of records beside that of a name begin so; the name follows.
const (
	// The queue of a fair mutex; and where locks were kept that several may hold, before names had
	// kinds.
	Locks     = ".lock/"
	Elections = ".election/" // the candidates of an election
	Turns     = ".turn/"     // the last turns of a job
)

// Values begins the names of the values of pools (pools.KeyPrefix). No version had them shared.
const Values = "identity/"

// mutex is the kind of the record beside a name that says who waits for its lease in order: that
// keeps nobody out.
const mutex = "mutex"

// Beside returns the key of the record that has to be read to know who uses the name of rec as what
// it is, beside rec itself: "" when there is none. wanted is what the name is wanted as.
func Beside(rec store.Record, wanted store.Kind) string {
	prefix := ""
	switch {
	case wanted == "":
	case rec.Kind == "" && !strings.HasPrefix(rec.Key, Values):
		prefix = Locks
	case rec.Kind == store.KindElection && wanted != rec.Kind:
		prefix = Elections
	}
	if prefix == "" || len(prefix)+len(rec.Key) > store.MaxKey { // too long a name for one
		return ""
	}
	return prefix + rec.Key
}

// format is that of both.
const format = 1

// listing is what the data of a lock and of an election have in common.
type listing struct {
	Format     int        `json:"v"`
	Kind       store.Kind `json:"kind"`
	Held       []member   `json:"held"`
	Queue      []member   `json:"queue"`
	Candidates []member   `json:"candidates"`
}

type member struct {
	Session string `json:"session"`
}

// Members returns the keys of the sessions that a lock's or an election's record names, each once,
// and which kind it is; for a record that names none, whatever its data are, nothing. The error
// matches [store.ErrCorrupt].
func Members(rec store.Record) (sessions []string, kind store.Kind, err error) {
	if len(rec.Data) == 0 {
		return nil, "", nil
	}
	var l listing
	if err := json.Unmarshal(rec.Data, &l); err != nil {
		return nil, "", driver.Corrupt(rec.Key, err)
	}
	if l.Format != format {
		return nil, "", driver.Corrupt(rec.Key, fmt.Errorf("who uses the name is listed in format %d: this version reads format %d", l.Format, format))
	}
	if l.Kind == mutex {
		return nil, "", nil
	}
	if l.Kind == "" && len(l.Candidates) > 0 {
		l.Kind = store.KindElection
	}
	for _, m := range slices.Concat(l.Held, l.Queue, l.Candidates) {
		if !slices.Contains(sessions, m.Session) {
			sessions = append(sessions, m.Session)
		}
	}
	return sessions, l.Kind, nil
}
