package dynamotables

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Our attributes of a neighbour's row. Its PutItem wipes them; its UpdateItem leaves them beside
// columns that they don't belong to, which is what columnsAttr tells.
var (
	// The record, as driver.Marshal writes it.
	recordAttr  = column{name: "leasehold_record"}
	versionAttr = column{name: "leasehold_version"} // id of the write
	// The neighbour's columns as that write left them.
	columnsAttr = column{name: "leasehold_columns"}
	// A token that the companion is known to have.
	keptAttr = column{name: "leasehold_kept", number: true}
)

// stamp is what tells a stored version of a row from all others: what it holds of the neighbour's
// columns and of ours. As JSON it is the row's version.
type stamp struct {
	Columns columns `json:"c"`
	ID      *string `json:"v"`
	Kept    *string `json:"k"`
}

// The beginnings of versions.
const (
	ofRow       = "row:"   // a stamp follows
	ofCompanion = "token:" // there is no row; the id of the companion's last write follows
)

func (st stamp) String() string { return ofRow + string(mustJSON(st)) }

// mustJSON writes what can always be written.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and nil: nothing that came from outside decides
	}
	return b
}

// parseStamp returns the stamp that a version was made of, or false when none was.
func (sc *schema) parseStamp(version string) (stamp, bool) {
	text, ok := strings.CutPrefix(version, ofRow)
	var st stamp
	if !ok || json.Unmarshal([]byte(text), &st) != nil || len(st.Columns) != len(sc.columns) || st.String() != version {
		return stamp{}, false
	}
	for i, col := range sc.columns {
		if v := st.Columns[i]; col.number && v != nil && !isNumber(*v) && !(col.typed && strings.HasPrefix(*v, quote)) {
			return stamp{}, false
		}
	}
	return st, st.Kept == nil || isNumber(*st.Kept)
}

func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// kept is the token that the row itself says the companion has.
func (st stamp) kept() fence.Token {
	if st.Kept == nil {
		return 0
	}
	n, err := strconv.ParseUint(*st.Kept, 10, 64)
	if err != nil || n > uint64(fence.MaxToken) {
		return 0 // then the companion is asked
	}
	return fence.Token(n)
}

// attrs are the attributes of a stamp with their values, in one order.
func (sc *schema) attrs(st stamp) (cols []column, values columns) {
	return append(append(cols, sc.columns...), versionAttr, keptAttr), append(append(values, st.Columns...), st.ID, st.Kept)
}

// row is a neighbour's row as it was read.
type row struct {
	key   string
	stamp stamp
	ours  bool         // we wrote it last
	rec   store.Record // ours: as it was written
	hold  hold         // not ours: what the neighbour's rules make of it
}

// parse reads a row. Its errors name the attribute.
func (s *Store) parse(key string, attrs table.Row) (row, error) {
	r, err := s.schema.parse(attrs)
	if err != nil {
		return row{}, driver.Corrupt(key, fmt.Errorf("table %s: %w", s.table.Name, err))
	}
	r.key = key
	r.rec.Key, r.rec.Version = key, r.stamp.String()
	return r, nil
}

func (sc *schema) parse(attrs table.Row) (r row, err error) {
	if r.stamp.Columns, err = sc.extract(attrs); err != nil {
		return row{}, err
	}
	if r.stamp.ID, err = scalar(attrs, versionAttr); err != nil {
		return row{}, err
	}
	if r.stamp.Kept, err = scalar(attrs, keptAttr); err != nil {
		return row{}, err
	}
	wrote, err := scalar(attrs, columnsAttr)
	if err != nil {
		return row{}, err
	}
	r.ours = r.stamp.ID != nil && wrote != nil && *wrote == string(mustJSON(r.stamp.Columns))
	if !r.ours {
		r.hold, err = sc.read(r.stamp.Columns)
		return r, err
	}
	r.rec, err = body(attrs)
	return r, err
}

// body returns the record in an attribute of a row, or of a companion.
func body(attrs table.Row) (store.Record, error) {
	text, err := scalar(attrs, recordAttr)
	if err != nil {
		return store.Record{}, err
	}
	if text == nil {
		return store.Record{}, missing(recordAttr.name)
	}
	rec, err := driver.Unmarshal([]byte(*text))
	if err != nil {
		return store.Record{}, &attributeError{recordAttr.name, err.Error()}
	}
	return rec, nil
}

// keyRow returns the key attributes of a row.
func (sc *schema) keyRow(key string) table.Row {
	row := table.Row{sc.key: str(key)}
	if sc.sort != "" {
		row[sc.sort] = str(sc.sortValue)
	}
	return row
}

// newID returns an id that no write ever had: a random UUID, as neighbours use.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
