//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// guardName is what guards are called in lists of processes.
const guardName = "lease-guard"

// guardsOf returns the guards of a supervisor that run, sorted: none of them has ended or is
// stopped.
func guardsOf(pid int) (guards []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if runs(child) {
				guards = append(guards, child)
			}
		}
	}
	slices.Sort(guards)
	return guards
}

// runs reports whether a guard runs: it has not ended and is not stopped. One that was killed a
// moment ago may still run.
func runs(guard int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", guard))
	name, rest, found := strings.Cut(string(stat), ") ")
	return err == nil && found && strings.HasSuffix(name, "("+guardName) && !strings.ContainsAny(rest[:1], "ZXTt")
}

// marked returns the processes that have a variable in their environment, with what they are
// called.
func marked(variable string) map[int]string {
	found := map[int]string{}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, environ := range environs {
		text, err := os.ReadFile(environ)
		if err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}), func(v []byte) bool { return string(v) == variable }) {
			continue // it has ended, or is another's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(environ))); err == nil {
			// It may have ended meanwhile.
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(environ), "cmdline"))
			found[pid] = string(bytes.TrimRight(bytes.ReplaceAll(line, []byte{0}, []byte(" ")), " "))
		}
	}
	return found
}
