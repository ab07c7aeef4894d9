package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5" // what dpkg reads
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"
)

// A deb is an ar archive of three files: debian-binary, control.tar.gz and data.tar.xz (deb(5)). The
// library for rpm could write one, too: but it takes longer to compile than half of the program.

// dictionary is that of xz. With the library's 8 MiB, the package would be no smaller, and take three
// times as long.
const dictionary = 1 << 20

// deb makes a package for Debian.
func (r *release) deb(p program, t target, exe string) error {
	files, err := r.files(p, exe)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	var installed int64
	for _, f := range files {
		b, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		installed += int64(len(b))
		fmt.Fprintf(&sums, "%x  .%s\n", md5.Sum(b), f.name)
	}
	version := strings.Replace(strings.TrimPrefix(r.version, "v"), "-", "~", 1) + "-1"
	arch := t.arch
	if arch == "armv7" {
		arch = "armhf"
	}
	control, err := r.control(map[string][]byte{
		"control": []byte(about(p, version, arch, installed)), "md5sums": sums.Bytes(), "conffiles": []byte(settings + "\n"),
	})
	if err != nil {
		return err
	}
	data, err := r.data(files)
	if err != nil {
		return err
	}
	return r.write(fmt.Sprintf("%s_%s_%s.deb", p.name, version, arch), func(w io.Writer) error {
		_, err := io.WriteString(w, "!<arch>\n")
		for _, part := range []struct {
			name string
			text []byte
		}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", control}, {"data.tar.xz", data}} {
			_, failed := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", part.name, r.made.Unix(), 0, 0, 0o100644, len(part.text))
			if len(part.text)%2 == 1 { // the next one begins at an even place
				part.text = append(part.text, '\n')
			}
			_, torn := w.Write(part.text)
			err = errors.Join(err, failed, torn)
		}
		return err
	})
}

// about is what apt and dpkg know about a package. procps has the /bin/kill that reloads the server.
func about(p program, version, arch string, installed int64) string {
	return fmt.Sprintf(`Package: %s
Version: %s
Section: admin
Priority: optional
Architecture: %s
License: %s
Maintainer: %s
Installed-Size: %d
Replaces: %[7]s
Recommends: procps
Conflicts: %[7]s
Description: %[8]s
`, p.name, version, arch, license, maintainer, installed/1024, p.other(), strings.ReplaceAll(p.description(), "\n", "\n "))
}

// control is the archive of what dpkg itself uses.
func (r *release) control(texts map[string][]byte) ([]byte, error) {
	for _, name := range scripts {
		b, err := embedded.ReadFile("files/" + name)
		if err != nil {
			return nil, err
		}
		texts[name] = b
	}
	var all bytes.Buffer
	z := gzip.NewWriter(&all)
	out := tar.NewWriter(z)
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mode := fs.FileMode(0o644)
		if slices.Contains(scripts, name) {
			mode = 0o755
		}
		if err := out.WriteHeader(r.header("./"+name, mode, len(texts[name]))); err != nil {
			return nil, err
		}
		if _, err := out.Write(texts[name]); err != nil {
			return nil, err
		}
	}
	err := errors.Join(out.Close(), z.Close())
	return all.Bytes(), err
}

// data is the archive of what is installed: folders before what is in them.
func (r *release) data(files []file) ([]byte, error) {
	var all bytes.Buffer
	z, err := xz.WriterConfig{DictCap: dictionary}.NewWriter(&all)
	if err != nil {
		return nil, err
	}
	below := make([]file, 0, len(files))
	folders := []string{"." + runFolder + "/"}
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "/"; dir = path.Dir(dir) {
			folders = append(folders, "."+dir+"/")
		}
		f.name = "." + f.name
		below = append(below, f)
	}
	slices.Sort(folders)
	err = r.tar(z, slices.Compact(folders), below)
	err = errors.Join(err, z.Close())
	return all.Bytes(), err
}

// files are what a package for Linux puts where, by name.
func (r *release) files(p program, exe string) ([]file, error) {
	own := func(name string) string { return filepath.Join(r.work, "own", "files", name) }
	complete := func(shell string) string { return filepath.Join(r.texts[p.name].completions, "leasehold."+shell) }
	if _, err := os.Stat(own("")); err != nil {
		if err := os.CopyFS(filepath.Join(r.work, "own"), embedded); err != nil {
			return nil, err
		}
	}
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
		{settings, own("env"), 0o600},
	}
	pages, err := in(r.texts[p.name].man, "/usr/share/man/man1")
	if err != nil {
		return nil, err
	}
	for _, page := range pages { // as Debian wants them
		to := filepath.Join(r.work, "gz", p.name, filepath.Base(page.from)+".gz")
		if _, err := os.Stat(to); err != nil {
			if err := gzipFile(page.from, to); err != nil {
				return nil, err
			}
		}
		list = append(list, file{page.name + ".gz", to, page.mode})
	}
	sortFiles(list)
	return list, nil
}
