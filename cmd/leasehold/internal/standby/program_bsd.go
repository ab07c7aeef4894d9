//go:build unix && !linux

package standby

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
