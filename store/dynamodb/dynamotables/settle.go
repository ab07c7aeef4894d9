package dynamotables

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// maxSettled bounds the memory of settled rows.
const maxSettled = 10_000

// standing is how a row of ours stands to its companion.
type standing int

const (
	settled   standing = iota // the companion has its token
	retracted                 // it was a late claim, and has been taken back
	replaced                  // it is not stored any more; a higher token is known
)

// settle sees that the companion has the token of a row of ours before anyone is told of it: if not
// now, the neighbour might wipe the row, and the token be given out again.
func (s *Store) settle(ctx context.Context, r row) (standing, error) {
	if r.rec.Token <= r.stamp.kept() || r.rec.Token <= s.recall(r.key, r.stamp) {
		return settled, nil
	}
	c, err := s.companion(ctx, r.key)
	if err != nil {
		return 0, err
	}
	if c.token < r.rec.Token {
		// It was claimed a moment ago, or it has been deleted since it was read, and its companion
		// with it, which must not be made again then.
		read, err := s.table.Get(ctx, s.schema.keyRow(r.key))
		if err != nil {
			return 0, err
		}
		if now, err := s.schema.parse(read.Row); read.Row == nil || err != nil || now.stamp.String() != r.stamp.String() {
			return replaced, nil
		}
		return s.settleNew(ctx, r)
	}
	return s.settleAt(ctx, r, c.token)
}

// settleNew is settle for a token that the companion is not expected to have.
func (s *Store) settleNew(ctx context.Context, r row) (standing, error) {
	highest, err := s.raise(ctx, r.rec)
	if err != nil {
		return 0, err
	}
	return s.settleAt(ctx, r, highest)
}

// settleAt judges a row by the companion's token. A higher one while the row is stored means that
// it was claimed late: meanwhile there was another term, of which the neighbour has wiped all but
// the token. Such a claim is taken back.
func (s *Store) settleAt(ctx context.Context, r row, highest fence.Token) (standing, error) {
	if highest > r.rec.Token {
		return s.retract(ctx, r, highest)
	}
	s.remember(r.key, r.stamp, r.rec.Token)
	return settled, nil
}

// retract frees a row that was claimed under a token that is not the highest, unless somebody else
// has written it meanwhile.
func (s *Store) retract(ctx context.Context, r row, highest fence.Token) (standing, error) {
	free := store.Record{Key: r.key, Token: highest, Past: r.rec.Past, Data: r.rec.Data, Nonce: "retract/" + newID()}
	_, err := s.write(ctx, free, &r.stamp, highest)
	var refused *table.RefusedError
	if errors.As(err, &refused) {
		return replaced, nil
	}
	return retracted, err
}

// remember keeps that the companion has the token of a row.
func (s *Store) remember(key string, st stamp, token fence.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.settled) >= maxSettled {
		clear(s.settled) // what is forgotten is asked for again
	}
	s.settled[key] = known{*st.ID, token}
}

// recall returns the token that the companion is remembered to have had when the row was that
// version.
func (s *Store) recall(key string, st stamp) fence.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.settled[key]; ok && st.ID != nil && m.id == *st.ID {
		return m.token
	}
	return 0
}

// forget ends the memory of a row.
func (s *Store) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.settled, key)
	delete(s.sighted, key)
}
