package file

import "golang.org/x/sys/unix"

// bootID names this boot by the kernel's random id of it.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil || id == "" {
		return ""
	}
	return id + "/"
}
