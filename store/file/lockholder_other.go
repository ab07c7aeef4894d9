//go:build !linux

package file

func (*lockFile) sign()          {}
func (*lockFile) unsign()        {}
func (*lockFile) holder() string { return " (stopped, perhaps)" }
