// The program packaging makes what a release consists of, out of this checkout: programs for each
// system, archives, deb and rpm packages, images, a Homebrew formula and checksums. It publishes
// nothing. scripts/package runs it.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is what is made, and where.
type release struct {
	root, into string // folders
	work       string // a folder for what is on the way; it goes at the end
	version    string // vX.Y.Z
	revision   string // the commit
	made       time.Time
	targets    []target
	programs   []program
	only       []string
	texts      map[string]texts // by program
}

// target is a system that programs are built for.
type target struct{ os, arch string }

// The systems, as in GOOS/GOARCH; armv7 is GOARCH=arm with GOARM=7.
var allTargets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"linux", "armv7"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func (t target) String() string { return t.os + "/" + t.arch }

// program is one of the builds.
type program struct {
	name string
	tags string
	// Import paths, as patterns, of what is compiled without inlining.
	plain []string
	flags string // more of them for the linker
}

// grpcnotrace takes the traces of gRPC out, which nothing here shows: they bring html/template, and
// with that the linker keeps every exported method of every type.
var allPrograms = []program{
	{"leasehold", "grpcnotrace", nil, ""},
	{"leasehold-lite", "lite,grpcnotrace", clients, dense},
}

// clients are libraries that wait for a network or run once, and this repository, whose calls wait
// for a store. Inlining in them would be 5 % of the light program.
var clients = []string{
	"crypto/tls", "crypto/x509", "github.com/go-jose/...", "github.com/jackc/...", "github.com/leasehold/leasehold/...",
	"github.com/prometheus/...", "github.com/redis/...", "github.com/spf13/...", "go.etcd.io/...", "go.uber.org/...", "go.yaml.in/...",
	"golang.org/...", "google.golang.org/...", "net/...", "vendor/...",
}

// dense lets functions begin at multiples of 4 bytes, not of 16 or 32. The padding between them is
// 2 % of the light program. The full one isn't smaller by much, and starts no faster.
const dense = "-funcalign=4"

var kinds = []string{"archive", "deb", "rpm", "image", "brew"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run() error {
	r := &release{texts: map[string]texts{}}
	var targets, programs, only string
	var here bool
	flag.StringVar(&r.root, "root", ".", "the checkout")
	flag.StringVar(&r.into, "into", "", "the folder for what is made; it may exist")
	flag.StringVar(&r.version, "version", "", "vX.Y.Z")
	flag.StringVar(&targets, "targets", "", "systems, such as linux/amd64,darwin/arm64; all by default")
	flag.StringVar(&programs, "programs", "", "leasehold, leasehold-lite; both by default")
	flag.StringVar(&only, "only", "", strings.Join(kinds, ", ")+"; all by default")
	flag.BoolVar(&here, "here", false, "for this machine's system alone, and the full program unless --programs says another")
	flag.Parse()
	var err error
	if here && targets != "" {
		return errors.New("--here stands for --targets: leave that out")
	}
	if here {
		targets, programs = own().String(), cmp.Or(programs, allPrograms[0].name)
	}
	if r.targets, err = choose("targets", targets, allTargets, target.String); err != nil {
		return err
	}
	if r.programs, err = choose("programs", programs, allPrograms, func(p program) string { return p.name }); err != nil {
		return err
	}
	if r.only, err = choose("only", only, kinds, func(s string) string { return s }); err != nil {
		return err
	}
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%q is one argument too many", flag.Arg(0))
	case !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(r.version):
		return fmt.Errorf("version %q: want vX.Y.Z or vX.Y.Z-PRE", r.version)
	case r.into == "":
		return errors.New("--into is missing: want a folder")
	}
	if err := r.find(); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.work) }()
	return r.make()
}

// own is the system of this machine.
func own() target {
	if runtime.GOARCH == "arm" {
		return target{runtime.GOOS, "armv7"}
	}
	return target{runtime.GOOS, runtime.GOARCH}
}

// choose reads a list that is part of all.
func choose[T any](flag, list string, all []T, name func(T) string) (chosen []T, err error) {
	if list == "" {
		return all, nil
	}
	var known []string
	for _, v := range all {
		known = append(known, name(v))
	}
	for word := range strings.SplitSeq(list, ",") {
		i := slices.Index(known, word)
		if i < 0 {
			return nil, fmt.Errorf("--%s %q: want some of %s", flag, word, strings.Join(known, ","))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// find fills in what the checkout says. Everything that is made bears the time of its commit, so
// that the same commit makes the same bytes.
func (r *release) find() (err error) {
	for _, dir := range []*string{&r.root, &r.into} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	if err = os.MkdirAll(r.into, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "leasehold-package-"); err != nil {
		return err
	}
	out, err := exec.Command("git", "-C", r.root, "log", "-1", "--format=%H %ct").Output()
	if err != nil {
		return fmt.Errorf("the commit of %s: %w", r.root, err)
	}
	hash, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	r.revision, r.made = hash, time.Unix(n, 0).UTC()
	return err
}

// step says what was made, and in which time: who waits for minutes wants to know for what.
func step(what string, begun time.Time, of ...any) {
	fmt.Printf("%4.0f s  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(what, of...))
}

// make makes all that was asked for.
func (r *release) make() error {
	for _, p := range r.programs {
		if err := r.describe(p); err != nil {
			return err
		}
		var images []platformImage
		for _, t := range r.targets {
			exe, err := r.build(p, t)
			if err != nil {
				return err
			}
			steps := map[string]func() error{"archive": func() error { return r.archive(p, t, exe) }}
			if t.os == "linux" {
				steps["deb"] = func() error { return r.linuxPackage("deb", p, t, exe) }
				steps["rpm"] = func() error { return r.linuxPackage("rpm", p, t, exe) }
				steps["image"] = func() error {
					image, err := r.image(p, t, exe)
					images = append(images, image)
					return err
				}
			}
			for _, kind := range r.only {
				if steps[kind] == nil {
					continue
				}
				begun := time.Now()
				if err := steps[kind](); err != nil {
					return fmt.Errorf("%s of %s for %v: %w", kind, p.name, t, err)
				}
				step("%s of %s for %v", begun, kind, p.name, t)
			}
		}
		if len(images) > 0 {
			if err := r.index(p, images); err != nil {
				return fmt.Errorf("image of %s: %w", p.name, err)
			}
		}
	}
	if slices.Contains(r.only, "brew") {
		if err := r.formula(); err != nil {
			return fmt.Errorf("Homebrew formula: %w", err)
		}
	}
	return r.sums()
}
