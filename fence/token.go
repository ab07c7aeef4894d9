package fence

import (
	"fmt"
	"strconv"
)

// Token is the fencing token of one term. It rises at every change of holder of a name and never
// falls: not by a release, an expiry, a break or a hand-over, nor when the same holder acquires the
// name again. The zero Token is that of a name that was never held; no term has it.
type Token uint64

// MaxToken is the largest token: 2^53 - 1, the largest integer that every JSON parser reads
// exactly.
const MaxToken Token = 1<<53 - 1

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// ParseToken reads a token in decimal: an integer between 1 and [MaxToken], without a sign.
// Anything else is an error that names the value.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || Token(n) > MaxToken {
		return 0, fmt.Errorf("token %q: want a whole number from 1 to %d, as `leasehold show NAME` prints it", s, uint64(MaxToken))
	}
	return Token(n), nil
}
