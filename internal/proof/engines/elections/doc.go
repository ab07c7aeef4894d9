// Package elections puts elections, ours and client-go's, through the same partitions, in virtual
// time.
package elections
