package main

import (
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// command is the package of the program, and cli where its version is.
const (
	command = "./cmd/leasehold"
	cli     = "github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// build builds a static program without symbols, and returns its path.
func (r *release) build(p program, t target) (string, error) {
	exe := filepath.Join(r.work, "bin", p.name, p.tags, t.os+"_"+t.arch, "leasehold")
	if t.os == "windows" {
		exe += ".exe"
	}
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	flags := fmt.Sprintf("-s -w -X %[1]s.version=%[2]s -X %[1]s.revision=%[3]s -X %[1]s.revisionTime=%[4]s",
		cli, r.version, r.revision, r.made.Format("2006-01-02T15:04:05Z"))
	if t.os == "linux" && (t.arch == "amd64" || t.arch == "arm64") {
		flags += " -E _leasehold_entry" // a guard of a short command is light: see package leaseguard
	}
	if p.flags != "" {
		flags += " " + p.flags
	}
	begun := time.Now()
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags", p.tags, "-ldflags", flags}
	for _, path := range p.plain {
		args = append(args, "-gcflags="+path+"=-l")
	}
	cmd := exec.Command("go", append(args, "-o", exe, command)...)
	arch, arm := t.arch, ""
	if t.arch == "armv7" {
		arch, arm = "arm", "7"
	}
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(withoutGo(os.Environ()), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+t.os, "GOARCH="+arch, "GOARM="+arm)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s for %v: %w", p.name, t, err)
	}
	step("%s for %v, compiled and linked", begun, p.name, t)
	info, err := buildinfo.ReadFile(exe)
	if err != nil {
		return "", err
	}
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" && s.Value != "0" {
			return "", fmt.Errorf("%s for %v is linked with cgo", p.name, t)
		}
	}
	return exe, nil
}

// withoutGo leaves out of an environment what says how to build: what is made must not depend on
// it.
func withoutGo(env []string) (kept []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GOFLAGS", "GOWORK", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOARM64", "GOEXPERIMENT", "CGO_ENABLED":
		default:
			kept = append(kept, v)
		}
	}
	return kept
}

// texts are what the program writes about itself: files below a folder.
type texts struct {
	man         string // of manual pages
	completions string // leasehold.bash, leasehold.zsh, leasehold.fish
	units       string // of systemd
}

// describe has a program, built for this machine, write its texts. The light one lacks what writes
// manual pages: another build of it has that.
func (r *release) describe(p program) error {
	if strings.Contains(p.tags, "lite") {
		p.tags += ",man"
	}
	exe, err := r.build(p, own())
	if err != nil {
		return err
	}
	defer step("its manual pages, completions and units", time.Now())
	dir := func(name string) string { return filepath.Join(r.work, "texts", p.name, name) }
	t := texts{man: dir("man"), completions: dir("completions"), units: dir("units")}
	r.texts[p.name] = t
	for _, d := range []string{t.man, t.completions, t.units} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	say := func(args ...string) ([]byte, error) {
		cmd := exec.Command(exe, args...)
		cmd.Env, cmd.Stderr = []string{"HOME=/nonexistent", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.made.Unix())}, os.Stderr
		return cmd.Output()
	}
	if _, err := say("man", t.man); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := say("completion", shell)
		if err == nil {
			err = os.WriteFile(filepath.Join(t.completions, "leasehold."+shell), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	unit, err := say("init", "systemd", "--exec", "/usr/bin/leasehold")
	if err != nil {
		return err
	}
	// The package makes a user, whose files other programs of the machine can be allowed to read.
	const dynamic = "\nDynamicUser=yes\n"
	if strings.Count(string(unit), dynamic) != 1 {
		return fmt.Errorf("the unit of `leasehold init systemd` hasn't the line %q, for which the package sets its user", dynamic)
	}
	text := strings.Replace(string(unit), dynamic, "\nUser=leasehold\nGroup=leasehold\n", 1)
	return os.WriteFile(filepath.Join(t.units, "leasehold.service"), []byte(text), 0o644)
}

// file is one of an archive, a package or an image.
type file struct {
	name string // in the archive
	from string // on this machine
	mode fs.FileMode
}

// in returns the files of a folder.
func in(dir, as string) (files []file, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		files = append(files, file{filepath.ToSlash(filepath.Join(as, e.Name())), filepath.Join(dir, e.Name()), 0o644})
	}
	return files, err
}
