package file

import (
	"os"
	"strings"
)

// bootID names this boot by the kernel's random id and the time namespace of this process. The namespace is named by its
// inode, whose number the kernel uses again, and by its offset.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/time")
	if err != nil && !os.IsNotExist(err) { // a kernel before 5.6 has none
		return ""
	}
	offsets, _ := os.ReadFile("/proc/self/timens_offsets")
	_, offset, _ := strings.Cut(string(offsets), "boottime")
	return strings.TrimSpace(string(id)) + "/" + space + strings.Join(strings.Fields(offset), ".")
}
