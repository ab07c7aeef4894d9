package file

import (
	"hash/fnv"
	"io"
)

const wakeSuffix = ".wake"

// hash is the same in every process.
func hash(key string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	return h.Sum64()
}
