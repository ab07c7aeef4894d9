//go:build !bare

package main

import (
	"io"
	"io/fs"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// rpm makes a package for Fedora, RHEL and SUSE.
func (r *release) rpm(p program, t target, exe string) error {
	list, err := r.files(p, exe)
	if err != nil {
		return err
	}
	var contents files.Contents
	for _, f := range list {
		kind := ""
		if f.name == settings {
			kind = files.TypeConfigNoReplace
		}
		contents = append(contents, &files.Content{
			Source: f.from, Destination: f.name, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.made},
		})
	}
	contents = append(contents, &files.Content{
		Destination: runFolder, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755 | fs.ModeDir, MTime: r.made},
	})
	arch := t.arch
	if arch == "armv7" {
		arch = "arm7"
	}
	script := func(name string) string { return filepath.Join(r.work, "own", "files", name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: p.name, Arch: arch, Platform: "linux", Version: r.version, Release: "1", Section: "admin", Priority: "optional",
		Maintainer: maintainer, Description: p.description(), License: license, MTime: r.made, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents, Conflicts: []string{p.other()}, Replaces: []string{p.other()}, Umask: 0o022,
			Scripts: nfpm.Scripts{PostInstall: script(scripts[0]), PreRemove: script(scripts[1]), PostRemove: script(scripts[2])},
			RPM:     nfpm.RPM{BuildHost: "localhost", Summary: summary},
		},
	})
	if err := nfpm.PrepareForPackager(info, "rpm"); err != nil {
		return err
	}
	return r.write(rpm.DefaultRPM.ConventionalFileName(info), func(w io.Writer) error { return rpm.DefaultRPM.Package(info, w) })
}
