package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// base is what the names of a program's files begin with.
func (r *release) base(p program, t target) string {
	return fmt.Sprintf("%s_%s_%s_%s", p.name, strings.TrimPrefix(r.version, "v"), t.os, t.arch)
}

// archive writes the program with its papers: a zip for Windows, a tar.gz for others.
func (r *release) archive(p program, t target, exe string) error {
	base := r.base(p, t)
	files := []file{
		{base + "/" + filepath.Base(exe), exe, 0o755},
		{base + "/LICENSE", filepath.Join(r.root, "LICENSE"), 0o644},
		{base + "/README.md", filepath.Join(r.root, "README.md"), 0o644},
	}
	for dir, as := range map[string]string{r.texts[p.name].completions: "completions", r.texts[p.name].man: "man/man1"} {
		more, err := in(dir, base+"/"+as)
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	sortFiles(files)
	if t.os == "windows" {
		return r.write(base+".zip", func(w io.Writer) error { return r.zip(w, files) })
	}
	return r.write(base+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
		if err != nil {
			return err
		}
		return errors.Join(r.tar(z, files, nil), z.Close())
	})
}

func sortFiles(all []file) {
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// write writes a file into the folder of the release.
func (r *release) write(name string, fill func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.into, name))
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

// tar writes files, which all belong to root and bear the time of the commit. adapt, if set,
// changes their headers.
func (r *release) tar(w io.Writer, files []file, adapt func(*tar.Header)) error {
	out := tar.NewWriter(w)
	for _, f := range files {
		b, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(b)), Mode: int64(f.mode.Perm()), ModTime: r.made, Uname: "root", Gname: "root"}
		if adapt != nil {
			adapt(h)
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return out.Close()
}

func (r *release) zip(w io.Writer, files []file) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		b, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.made}
		h.SetMode(f.mode)
		part, err := out.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(b); err != nil {
			return err
		}
	}
	return out.Close()
}

// sums writes SHA256SUMS, as sha256sum -c reads it, over all that is in the folder.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.into)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == "SHA256SUMS" {
			continue
		}
		sum, err := sha256File(filepath.Join(r.into, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.into, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

func sha256File(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// gzipFile writes a file without the name and the time that gzip can keep.
func gzipFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	_, err = z.Write(b)
	return errors.Join(err, z.Close(), f.Close())
}
