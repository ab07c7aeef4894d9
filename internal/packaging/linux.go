//go:build !bare

package main

import (
	"embed"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

//go:embed files
var embedded embed.FS

// lay copies the embedded files to where the libraries find them.
func (r *release) lay() (string, error) {
	dir := filepath.Join(r.work, "own")
	if _, err := os.Stat(dir); err == nil {
		return filepath.Join(dir, "files"), nil
	}
	return filepath.Join(dir, "files"), os.CopyFS(dir, embedded)
}

// linuxPackage makes a deb or an rpm. The light program's package takes the place of the full
// one's.
func (r *release) linuxPackage(format string, p program, t target, exe string) error {
	contents, err := r.contents(p, exe)
	if err != nil {
		return err
	}
	dir, err := r.lay()
	if err != nil {
		return err
	}
	other := allPrograms[0].name
	if p.name == other {
		other = allPrograms[1].name
	}
	arch := t.arch
	if arch == "armv7" {
		arch = "arm7"
	}
	description := "Leases, locks, leader election and fencing\nLeasehold runs a program once at a time, on one machine or on many."
	if p.name != allPrograms[0].name {
		description += "\nThis light build knows the stores file, HTTP, etcd, PostgreSQL and Redis."
	}
	script := func(name string) string { return filepath.Join(dir, name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: p.name, Arch: arch, Platform: "linux", Version: r.version, Release: "1", Section: "admin", Priority: "optional",
		Maintainer: "The Leasehold authors <leasehold@invalid>", Description: description, License: "Apache-2.0", MTime: r.made, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents, Conflicts: []string{other}, Replaces: []string{other}, Umask: 0o022,
			Scripts: nfpm.Scripts{PostInstall: script("postinst"), PreRemove: script("prerm"), PostRemove: script("postrm")},
			RPM:     nfpm.RPM{BuildHost: "localhost", Summary: "Leases, locks, leader election and fencing"},
			Deb:     nfpm.Deb{Compression: "xz"},
		},
	})
	if format == "deb" {
		// Whose /bin/kill reloads the server; elsewhere util-linux has it.
		info.Recommends = []string{"procps"}
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	return r.write(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}

// contents are what a package puts where.
func (r *release) contents(p program, exe string) (files.Contents, error) {
	dir, err := r.lay()
	if err != nil {
		return nil, err
	}
	own := func(name string) string { return filepath.Join(dir, name) }
	complete := func(shell string) string { return filepath.Join(r.texts[p.name].completions, "leasehold."+shell) }
	list := []file{
		{"/usr/bin/leasehold", exe, 0o755},
		{"/usr/lib/systemd/system/leasehold.service", filepath.Join(r.texts[p.name].units, "leasehold.service"), 0o644},
		{"/usr/lib/systemd/system/leasehold-run@.service", own("leasehold-run@.service"), 0o644},
		{"/usr/lib/sysusers.d/leasehold.conf", own("sysusers.conf"), 0o644},
		{"/usr/share/bash-completion/completions/leasehold", complete("bash"), 0o644},
		{"/usr/share/zsh/vendor-completions/_leasehold", complete("zsh"), 0o644},
		{"/usr/share/fish/vendor_completions.d/leasehold.fish", complete("fish"), 0o644},
		{"/usr/share/doc/" + p.name + "/copyright", filepath.Join(r.root, "LICENSE"), 0o644},
		{"/usr/share/doc/" + p.name + "/README.md", filepath.Join(r.root, "README.md"), 0o644},
	}
	pages, err := in(r.texts[p.name].man, "/usr/share/man/man1")
	if err != nil {
		return nil, err
	}
	for _, page := range pages { // as Debian wants them
		if page, err = r.compressed(page); err != nil {
			return nil, err
		}
		list = append(list, page)
	}
	sortFiles(list)
	var all files.Contents
	for _, f := range list {
		all = append(all, r.content(f, ""))
	}
	return append(all,
		r.content(file{"/etc/leasehold/env", own("env"), 0o600}, files.TypeConfigNoReplace),
		&files.Content{Destination: "/etc/leasehold/run", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755 | fs.ModeDir, MTime: r.made}},
	), nil
}

func (r *release) content(f file, kind string) *files.Content {
	return &files.Content{Source: f.from, Destination: f.name, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.made}}
}

// compressed returns a file as gzip.
func (r *release) compressed(f file) (file, error) {
	to := filepath.Join(r.work, "gz", strings.TrimPrefix(f.from, r.work)+".gz")
	if _, err := os.Stat(to); err != nil {
		if err := gzipFile(f.from, to); err != nil {
			return f, err
		}
	}
	return file{f.name + ".gz", to, f.mode}, nil
}
