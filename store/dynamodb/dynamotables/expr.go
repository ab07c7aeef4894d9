package dynamotables

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// expr builds the expressions of one request: a condition and an update that share their names and
// values.
type expr struct {
	names   map[string]string
	values  table.Row
	conds   []string
	sets    []string
	removes []string
	noRow   bool // as table.Cond.Absent
}

func newExpr() *expr { return &expr{names: map[string]string{}, values: table.Row{}} }

// name returns a stand-in for an attribute's name, any of which may be a reserved word.
func (x *expr) name(attr string) string {
	for n, a := range x.names {
		if a == attr {
			return n
		}
	}
	n := fmt.Sprintf("#%d", len(x.names))
	x.names[n] = attr
	return n
}

func (x *expr) value(v types.AttributeValue) string {
	n := fmt.Sprintf(":%d", len(x.values))
	x.values[n] = v
	return n
}

// is demands that an attribute has that value, or that there is none for nil.
func (x *expr) is(col column, value *string) {
	if value == nil {
		x.absent(col.name)
		return
	}
	x.conds = append(x.conds, x.name(col.name)+" = "+x.value(col.value(*value)))
}

// creates demands that a row has no such attribute, which may make the row.
func (x *expr) creates(attr string) {
	x.absent(attr)
	x.noRow = true
}

// absent demands that a row has no such attribute.
func (x *expr) absent(attr string) {
	x.conds = append(x.conds, "attribute_not_exists("+x.name(attr)+")")
}

// set changes an attribute, or removes it for nil.
func (x *expr) set(col column, value *string) {
	if value == nil {
		x.removes = append(x.removes, x.name(col.name))
		return
	}
	x.sets = append(x.sets, x.name(col.name)+" = "+x.value(col.value(*value)))
}

// give sets an attribute in a row that has none of that name.
func (x *expr) give(attr string, v types.AttributeValue) {
	name := x.name(attr)
	x.sets = append(x.sets, fmt.Sprintf("%s = if_not_exists(%s, %s)", name, name, x.value(v)))
}

func (x *expr) update() string {
	var parts []string
	if len(x.sets) > 0 {
		parts = append(parts, "SET "+strings.Join(x.sets, ", "))
	}
	if len(x.removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(x.removes, ", "))
	}
	return strings.Join(parts, " ")
}

func (x *expr) cond() table.Cond {
	c := table.Cond{Expr: strings.Join(x.conds, " AND "), Names: x.names, Absent: x.noRow}
	if len(x.values) > 0 {
		c.Values = x.values
	}
	return c
}

// matches demands that the row is still the version of that stamp.
func (x *expr) matches(sc *schema, st stamp) {
	cols, values := sc.attrs(st)
	for i, col := range cols {
		x.is(col, values[i])
	}
	x.conds = append(x.conds, "attribute_exists("+x.name(sc.key)+")")
}
