package shardmap

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// ParseHash returns the hash that a text names: 0x and hexadecimal digits, 16 hexadecimal digits,
// or the ID of a slice, for its first hash.
func ParseHash(text string) (uint64, error) {
	digits, _, isID := strings.Cut(text, "-")
	short := strings.TrimPrefix(digits, "0x")
	h, err := strconv.ParseUint(short, 16, 64)
	if err != nil || len(short) == len(digits) && len(digits) != 16 || isID && len(digits) != 16 {
		return 0, fmt.Errorf("hash %.40q: want 16 hexadecimal digits, fewer behind 0x, or a slice such as 4000000000000000-7fffffffffffffff", text)
	}
	return h, nil
}

// TokenTime returns when a token was made, by the wall clock of who made it: for people. It may be
// late where tokens rose faster than the clock.
func TokenTime(t fence.Token) time.Time {
	if t > 1<<52 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)) //nolint:gosec // it is below 1<<52
}
