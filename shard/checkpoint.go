package shard

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// MaxCheckpoint is how many bytes the checkpoint of a name may have.
const MaxCheckpoint = 4 << 10

// Checkpoint returns what the owners of this name saved last; nil if nobody has. It marks the
// checkpoint with this term's token first, in one write: from then on no earlier owner can save. So
// call it in Start. An error that matches [fence.ErrStale] says that a later owner has done so.
// Checkpoint blocks until the store has answered or ctx is done. After an error that matches
// [store.ErrUnknownOutcome] it can be called again.
func (s *Slice) Checkpoint(ctx context.Context) ([]byte, error) {
	var data []byte
	err := s.checkpoint(ctx, func(rec *store.Record) bool {
		data = rec.Data
		return rec.Token < s.Token
	})
	return data, err
}

// SaveCheckpoint saves what the next owner of this name is to continue from, [MaxCheckpoint] bytes
// at most, under this term's token. The rest is as with [Slice.Checkpoint].
func (s *Slice) SaveCheckpoint(ctx context.Context, data []byte) error {
	if len(data) > MaxCheckpoint {
		return fmt.Errorf("save the checkpoint of %v: %d bytes: want at most %d", s, len(data), MaxCheckpoint)
	}
	return s.checkpoint(ctx, func(rec *store.Record) bool {
		rec.Data = data
		return true
	})
}

func (s *Slice) checkpoint(ctx context.Context, f func(rec *store.Record) bool) error {
	if s.Name == "" {
		return fmt.Errorf("checkpoint of %v: a slice of a hashed space has none, since it splits and merges", s)
	}
	o := s.worker
	err := store.Update(ctx, o.st, o.space.CheckpointKey(s.Name), func(rec *store.Record) (bool, error) {
		if rec.Token > s.Token {
			return false, &fence.StaleError{Name: o.space.Name + "/" + s.Name, Got: s.Token, Current: rec.Token}
		}
		write := f(rec)
		rec.Token = s.Token
		return write, nil
	})
	if err != nil {
		return fmt.Errorf("checkpoint of %v: %w", s, err)
	}
	return nil
}
