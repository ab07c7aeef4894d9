//go:build unix

package main

import "syscall"

// apart has a process outlive the terminal that it was started from.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
