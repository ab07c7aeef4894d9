package redis

import (
	"crypto/sha1"
	"encoding/hex"
)

// script is a Lua script on one key.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) // as Redis names scripts
	return script{text, hex.EncodeToString(sum[:])}
}

// The fields of a record's hash. Those of terms are written when the term is new.
const fields = `'version', 'record', 'written', 'past0', 'past1', 'past2', 'past3', 'past4', 'past5', 'past6', 'past7'`

// The first word of an answer, and the only one as a rule. It is alone then, not in a table: that
// takes a fifth of a write's time.
const (
	answerDone    = "done"
	answerFound   = "found" // then the time now, and the fields
	answerMissing = "missing"
	answerSame    = "same"
)

// The parts of the scripts. They are spelled out where they are needed, for a function in Lua is
// made anew at each call: that took a fifth of a write's time.
const (
	// matches: the version demanded, ARGV[1], is the stored one; empty demands that nothing is
	// stored.
	matches = `
local version, matches = redis.call('HGET', KEYS[1], 'version'), false
if version then matches = version == ARGV[1]
else matches = ARGV[1] == '' and redis.call('EXISTS', KEYS[1]) == 0 end
`
	// refuse: changes nothing, and has a replica refuse the script: what it would show may be
	// stale.
	refuse = `
redis.call('HDEL', KEYS[1], 'none')
`
	// now: microseconds as text, since a Lua number holds them only for some 280 years.
	now = `
local time = redis.call('TIME')
local now = time[1] .. string.format('%06d', time[2])
`
	// show: what is stored.
	show = `
local row = redis.call('HMGET', KEYS[1], ` + fields + `)
if not row[1] and redis.call('EXISTS', KEYS[1]) == 0 then return 'missing' end
` + now + `
return {'found', now, unpack(row)}
`
)

// getScript: ARGV[1], if it is there, is a version that the caller knows already, empty for none.
var getScript = newScript(refuse + `
if ARGV[1] then ` + matches + ` if matches then return 'same' end end
` + show)

// confirmScript writes, so that replicas have something to acknowledge, and changes nothing.
var confirmScript = newScript(`
redis.call('HSET', KEYS[1], 'none', '')
` + refuse + show)

// putScript: ARGV is the version demanded, the new one, the record, the channel, the key as callers
// know it, then names and values of further fields. What can fail comes before the write: PUBLISH
// for a missing permission. Nobody hears of it before the script has ended.
var putScript = newScript(matches + `if not matches then ` + refuse + show + ` end
if ARGV[4] ~= '' then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
` + now + `
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3], 'written', now, unpack(ARGV, 6))
return 'done'
`)

// deleteScript: ARGV is the version demanded, the channel, the key as callers know it.
var deleteScript = newScript(matches + `if ARGV[1] == '' or not matches then ` + refuse + show + ` end
if ARGV[2] ~= '' then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
redis.call('DEL', KEYS[1])
return 'done'
`)
