// Package comingfrom has the programs of docs/coming-from.md, as they are after the move.
package comingfrom
