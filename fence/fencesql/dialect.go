package fencesql

import (
	"fmt"
	"regexp"
	"strconv"
)

// Dialect is how a database wants its SQL.
type Dialect int

// The dialects. SQLite has to be of version 3.24 or later.
const (
	PostgreSQL Dialect = iota + 1
	SQLite
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	}
	return "Dialect(" + strconv.Itoa(int(d)) + ")"
}

// param returns the placeholder of the argument of that number, from 1.
func (d Dialect) param(n int) string {
	if d == SQLite {
		return "?" + strconv.Itoa(n)
	}
	return "$" + strconv.Itoa(n)
}

var identifier = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*$`)

// check returns an error unless d is a dialect and table can stand in SQL as it is.
func (d Dialect) check(table string) error {
	if d != PostgreSQL && d != SQLite {
		return fmt.Errorf("SQL guard: dialect %d: want fencesql.PostgreSQL or fencesql.SQLite", d)
	}
	if !identifier.MatchString(table) {
		return fmt.Errorf("SQL guard: table %.80q: want ASCII letters, digits and _, perhaps after a schema and a dot", table)
	}
	return nil
}
