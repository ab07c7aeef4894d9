package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const sumsFile = "SHA256SUMS"

// eachSum calls yield for each file of the release with its SHA-256 and its path in it.
func eachSum(dir string, yield func(sum, name string) error) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == sumsFile {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it is only read
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		return yield(fmt.Sprintf("%x", h.Sum(nil)), filepath.ToSlash(rel))
	})
}

// writeSums writes the sums of all files in the form that `sha256sum --check` reads.
func writeSums(dir string) error {
	var text strings.Builder
	err := eachSum(dir, func(sum, name string) error {
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
		return nil
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(text.String()), 0o644)
}

// checkSums returns an error when a file is not as it was, is missing, or is too many.
func checkSums(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			return fmt.Errorf("%s: line %q: want a sum, two spaces and a name", sumsFile, line)
		}
		want[name] = sum
	}
	err = eachSum(dir, func(sum, name string) error {
		switch was, ok := want[name]; {
		case !ok:
			return fmt.Errorf("%s: it is not in %s: it came to the release later; remove it", name, sumsFile)
		case was != sum:
			return fmt.Errorf("%s: its SHA-256 is %s, and %s has %s: make the release again", name, sum, sumsFile, was)
		}
		delete(want, name)
		return nil
	})
	if err != nil {
		return err
	}
	for name := range want {
		return fmt.Errorf("%s: it is in %s and not in the release: make the release again", name, sumsFile)
	}
	return nil
}
