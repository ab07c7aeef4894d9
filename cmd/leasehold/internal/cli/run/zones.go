//go:build !lite

package run

import (
	_ "time/tzdata" // 450 KB, for machines and images without a database of time zones
)
