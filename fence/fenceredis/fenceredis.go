package fenceredis

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/fence"
)

// DefaultPrefix is the prefix of the keys of marks unless [Options] name another one.
const DefaultPrefix = "fence:"

// Options of [New]. The zero value is ready for use with a single server.
type Options struct {
	// Prefix is the prefix of the key of every mark; the name of the lease follows. The default is
	// [DefaultPrefix]. In a cluster the mark has to be in the slot of the keys that it guards. So
	// give the prefix their hash tag, as in "{billing}:fence:".
	Prefix string
}

// Guard puts checks before scripts. It keeps nothing in memory, so any number of processes may have
// one on the same marks. All methods may be called from any goroutine.
type Guard struct {
	client redis.Scripter
	prefix string
}

var _ fence.Guard = (*Guard)(nil)

// New returns a guard whose scripts are run through client: a *[redis.Client], a
// *[redis.ClusterClient] or what else can run scripts. It does no I/O.
func New(client redis.Scripter, opts Options) (*Guard, error) {
	if client == nil {
		return nil, errors.New("redis guard: client is nil: want one from redis.NewClient")
	}
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	return &Guard{client, opts.Prefix}, nil
}

// Script is a Lua script behind the check. It may be used by any number of guards, from any
// goroutine.
type Script struct{ guarded *redis.Script }

// NewScript returns the script of that text. In it, KEYS and ARGV are the caller's, as in any
// script. A text that begins with a line of flags (#!lua …) doesn't compile, because the flags
// would apply to the check as well.
func NewScript(text string) *Script {
	return &Script{redis.NewScript(before + text + after)}
}

// Run runs the script if the mark admits s, and returns its result. Otherwise the error of the
// command is a *[fence.StaleError]. After another error the script may have run. The mark is raised
// before it, and Redis undoes nothing when a script fails halfway. An error that matches
// [fence.ErrMalformed] comes without a request.
//
// The client sends a script again when the answer is lost, unless its MaxRetries is -1, with a
// guard as without. Then a refusal is about the last copy. An earlier copy may have run, before the
// later term began.
func (g *Guard) Run(ctx context.Context, s fence.Sequencer, script *Script, keys []string, args ...any) *redis.Cmd {
	if err := s.Valid(); err != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	allKeys := append([]string{g.prefix + s.Name}, keys...)
	allArgs := append([]any{s.Token.String(), s.Holder}, args...)
	cmd := script.guarded.Run(ctx, g.client, allKeys, allArgs...)
	if err := refusal(s, cmd.Err()); err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// nothing is what [Guard.Check] runs.
var nothing = NewScript(`return 0`)

// Check is [fence.Guard.Check], for resources elsewhere that are reached through several processes:
// all of them share the mark. It is one round trip. Guard data in Redis itself by [Guard.Run]
// instead. A sequencer that came from outside has to be of the lease that guards the resource: call
// [fence.Sequencer.Of] first.
func (g *Guard) Check(ctx context.Context, s fence.Sequencer) error {
	return g.Run(ctx, s, nothing, nil).Err()
}

// What a script answers when the mark refuses it: one word, then the token and the holder in
// hexadecimal; and when the mark is none.
const (
	stale   = "FENCESTALE"
	corrupt = "FENCECORRUPT"
)

// before is the check. Numbers in Lua are exact up to 2^53, which no token reaches. What can fail
// comes before the first write. The caller's text is in a function, so that it may return anywhere.
const before = `
local mark = redis.call('HMGET', KEYS[1], 'token', 'holder')
local token, holder, known, new = mark[1], mark[2], 0, tonumber(ARGV[1])
if token or redis.call('EXISTS', KEYS[1]) == 1 then
  if not token or not holder or not string.find(token, '^%d+$') or tonumber(token) > 9007199254740991 then
    return redis.error_reply('` + corrupt + ` ' .. KEYS[1])
  end
  known = tonumber(token)
end
if new < known or (new == known and ARGV[2] ~= holder) then
  local hex = string.gsub(holder, '.', function(c) return string.format('%02x', string.byte(c)) end)
  return redis.error_reply('` + stale + ` ' .. token .. ' ' .. hex)
end
if new > known then redis.call('HSET', KEYS[1], 'token', ARGV[1], 'holder', ARGV[2]) end
local function guarded(KEYS, ARGV)
`

// after calls the caller's text. It copies one by one: unpack takes some thousands only.
const after = `
end
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
return guarded(keys, args)
`

// refusal returns the error that stands for an answer of the check, or nil if err is another error,
// or none.
func refusal(s fence.Sequencer, err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return nil
	}
	words := strings.Split(answer.Error(), " ")
	switch {
	case words[0] == corrupt:
		return fmt.Errorf("%s: the value of %s is no mark: find out who wrote it", s.Name, strings.TrimPrefix(answer.Error(), corrupt+" "))
	case words[0] != stale || len(words) != 3:
		return nil
	}
	token, err1 := fence.ParseToken(words[1])
	holder, err2 := hex.DecodeString(words[2])
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("%s: its mark is none: %w", s.Name, err)
	}
	return &fence.StaleError{Name: s.Name, Got: s.Token, Current: token, Holder: string(holder)}
}
