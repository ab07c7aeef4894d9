package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Cache is the folder that scripts/engines installs into.
func Cache() (string, error) {
	if dir := os.Getenv("LEASEHOLD_CACHE"); dir != "" {
		return filepath.Join(dir, "servers"), nil
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "leasehold", "servers"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "leasehold", "servers"), err
}

// Program returns the path of a file that scripts/engines installed for an engine: etcdctl of etcd,
// for instance.
func Program(engine, file string) (string, error) {
	dir, err := Cache()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, engine, file)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no %s", path)
	}
	return path, nil
}

// installed finds a program that scripts/engines installed.
func installed(engine, file string) func() (string, error) {
	return func() (string, error) { return Program(engine, file) }
}

// onPath finds the first of some programs of the system's.
func onPath(names ...string) func() (string, error) {
	return func() (string, error) {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil {
				return path, nil
			}
		}
		return "", fmt.Errorf("there is no %s on the PATH", names[0])
	}
}
