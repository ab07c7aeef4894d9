//go:build !lite

package run

// The time zone database has 450 KB: it is for machines and images without one.
import _ "time/tzdata"
