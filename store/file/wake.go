package file

import (
	"hash/fnv"
	"io"
)

const wakeSuffix = ".wake"

// shards bounds how many names a store has in the wake folder, however many keys it waits for.
const shards = 64

// hash is the same in every process.
func hash(key string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	return h.Sum64()
}

func shardOf(h uint64) int { return int(h % shards) }
