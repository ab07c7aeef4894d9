package zookeeper

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// birthLen is the length of a birth: 80 random bits in base 32.
const birthLen = 16

func newBirth() string { return rand.Text()[:birthLen] }

// version is a version in its parts.
type version struct {
	birth string // of the record
	n     int32  // writes since
}

func (v version) String() string { return v.birth + "." + strconv.Itoa(int(v.n)) }

// parseVersion reads a version. It reports false for what no record ever had.
func parseVersion(text string) (version, bool) {
	birth, count, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(count, 10, 32)
	v := version{birth, int32(n)}
	return v, err == nil && n >= 0 && isBirth(birth) && v.String() == text
}

func isBirth(text string) bool {
	return len(text) == birthLen && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// encode returns the data of a znode.
func encode(birth string, body []byte) []byte {
	return append([]byte(birth+"\n"), body...)
}

// row is a stored record, or that there is none.
type row struct {
	rec store.Record
	// The transaction that wrote it: later ones have higher ones; 0 when there is no record.
	mzxid int64
}

// decode reads a znode.
func decode(key string, data []byte, stat *zk.Stat) (row, error) {
	birth, body, _ := bytes.Cut(data, []byte("\n"))
	if !isBirth(string(birth)) {
		return row{mzxid: stat.Mzxid}, driver.Corrupt(key, errors.New("its znode doesn't begin with a line that Leasehold writes: something else wrote it"))
	}
	rec, err := driver.Unmarshal(body)
	if err != nil {
		return row{mzxid: stat.Mzxid}, driver.Corrupt(key, fmt.Errorf("its znode: %w", err))
	}
	rec.Key, rec.Version = key, version{string(birth), stat.Version}.String()
	return row{rec, stat.Mzxid}, nil
}
