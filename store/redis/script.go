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

// The fields of a record's hash.
const fields = `'version', 'record', 'written'`

// The first word of an answer.
const (
	answerDone    = "done"
	answerFound   = "found" // then version, record, written, now
	answerMissing = "missing"
	answerSame    = "same"
)

// preamble: microseconds as text, since a Lua number holds them only for some 280 years, and what is stored.
const preamble = `
local function now()
  local t = redis.call('TIME')
  return t[1] .. string.format('%06d', t[2])
end
local function current()
  local r = redis.call('HMGET', KEYS[1], ` + fields + `)
  if not r[1] and redis.call('EXISTS', KEYS[1]) == 0 then return {'missing'} end
  return {'found', r[1], r[2], r[3], now()}
end
local function is(version)
  local v = redis.call('HGET', KEYS[1], 'version')
  if v then return v == version end
  return version == '' and redis.call('EXISTS', KEYS[1]) == 0
end
`

// getScript: ARGV[1], if it is there, is a version that the caller knows already, empty for none. The HDEL changes nothing; it
// has a replica refuse the script.
var getScript = newScript(preamble + `
redis.call('HDEL', KEYS[1], 'none')
if ARGV[1] and is(ARGV[1]) then return {'same'} end
return current()
`)

// putScript: ARGV is the version demanded, the new one, the record, the channel, the key as callers know it. What can fail
// comes before the write: PUBLISH for a missing permission. Nobody hears of it before the script has ended.
var putScript = newScript(preamble + `
if not is(ARGV[1]) then return current() end
if ARGV[4] ~= '' then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3], 'written', now())
return {'done'}
`)

// deleteScript: ARGV is the version demanded, the channel, the key as callers know it.
var deleteScript = newScript(preamble + `
if ARGV[1] == '' or not is(ARGV[1]) then return current() end
if ARGV[2] ~= '' then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
redis.call('DEL', KEYS[1])
return {'done'}
`)
