package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// consumer uses a release as strangers do: by its proxy, from folders outside of the workspace.
type consumer struct {
	repo    repo
	dir     string // the release
	version string
	work    string
	env     []string
	shared  bool
	out     io.Writer
	w       *Workspace // the tree of the release
}

// consume runs every step on the release in dir, and stops at the first that fails.
func consume(r repo, dir, version string, shared bool, out io.Writer) (err error) {
	if err := checkVersion(version); err != nil {
		return err
	}
	if shared && !strings.Contains(semver.Prerelease(version), "ci.") {
		return fmt.Errorf("--shared-cache: version %s could be published one day, and then the cache would have another: want a pre-release such as v0.0.1-ci.7", version)
	}
	c := &consumer{repo: r, version: version, shared: shared, out: out}
	if c.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if c.work, err = os.MkdirTemp("", "leasehold-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.cleanUp()) }()
	if err := c.prepare(); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"each file has its sum", func() error { return checkSums(c.dir) }},
		{"git, once tagged, gives the same modules", c.fromGit},
		{"the command is installed, and holds a lease", c.install},
		{"each module resolves by its own go.mod and go.sum", c.complete},
		{"the core alone brings nobody else's library", c.coreAlone},
		{"a program uses every module", c.program},
		{"a patch of one engine fits", c.patch},
		{"a minor version of one engine fails before it compiles", c.skew},
	} {
		begun := time.Now() //nolint:forbidigo // how long a step takes is told to people
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		//nolint:forbidigo // how long a step takes is told to people
		fmt.Fprintf(out, "%5.1f s  %s\n", time.Since(begun).Seconds(), step.name)
	}
	return nil
}

func (c *consumer) patchAndMinor() (patch, minor string) { return bump(c.version) }

// prepare makes the releases after this one, and the environment of somebody outside.
func (c *consumer) prepare() error {
	begun := time.Now() //nolint:forbidigo // how long a step takes is told to people
	tree, err := c.repo.clone(filepath.Join(c.work, "tree"), "HEAD")
	if err != nil {
		return err
	}
	if _, err := tree.git("fetch", "--quiet", filepath.Join(c.dir, "release.bundle"), "release/"+c.version+":release/"+c.version); err != nil {
		return err
	}
	if _, err := tree.git("checkout", "--quiet", "release/"+c.version); err != nil {
		return err
	}
	if c.w, err = load(string(tree)); err != nil {
		return err
	}
	base, err := c.repo.clone(filepath.Join(c.work, "base"), "HEAD")
	if err != nil {
		return err
	}
	if _, err := base.git("fetch", "--quiet", string(tree), "release/"+c.version); err != nil {
		return err
	}
	if _, err := base.git("checkout", "--quiet", "FETCH_HEAD~2"); err != nil {
		return err
	}
	patch, minor := c.patchAndMinor()
	all := []proxy{proxy(filepath.Join(c.dir, "proxy"))}
	for _, v := range []string{patch, minor} {
		into := filepath.Join(c.work, v)
		o := order{Repo: base, Version: v, Into: into, Tree: filepath.Join(c.work, "tree-"+v), Date: "2000-01-01", Rehearse: true, Out: io.Discard}
		if err := o.make(); err != nil {
			return err
		}
		all = append(all, proxy(filepath.Join(into, "proxy")))
	}
	merged := filepath.Join(c.work, "proxy")
	if err := proxy(merged).merge(all...); err != nil {
		return err
	}
	if err := c.environment("file://" + merged); err != nil {
		return err
	}
	//nolint:forbidigo // how long a step takes is told to people
	fmt.Fprintf(c.out, "%5.1f s  the next patch and the next minor version of the same tree\n", time.Since(begun).Seconds())
	return nil
}

func (c *consumer) environment(proxies string) error {
	out, err := command(c.work, []string{"GOWORK=off"}, "go", "env", "-json", "GOPROXY", "GOMODCACHE", "GOSUMDB")
	if err != nil {
		return err
	}
	var user struct{ GOPROXY, GOMODCACHE, GOSUMDB string }
	if err := json.Unmarshal([]byte(out), &user); err != nil {
		return err
	}
	cache := user.GOMODCACHE
	if !c.shared {
		// What the user has of others' modules need not come over the network again.
		cache = filepath.Join(c.work, "modules")
		proxies += ",file://" + filepath.Join(user.GOMODCACHE, "cache", "download")
	}
	c.env = []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -buildvcs=false", "GOMODCACHE=" + cache, "GOPROXY=" + proxies + "," + user.GOPROXY,
		"GONOSUMDB=" + c.w.Path + "," + c.w.Path + "/*", "GOSUMDB=" + user.GOSUMDB, "GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GOBIN=" + filepath.Join(c.work, "bin"), "GOTOOLCHAIN=local",
	}
	return nil
}

// cleanUp removes what was made, and from a shared cache all that it has of these versions.
func (c *consumer) cleanUp() error {
	var errs []error
	if c.shared && c.w != nil && c.env != nil {
		cache := strings.TrimPrefix(c.env[2], "GOMODCACHE=")
		patch, minor := c.patchAndMinor()
		for _, m := range c.w.Modules {
			for _, v := range []string{c.version, patch, minor} {
				errs = append(errs, os.RemoveAll(filepath.Join(cache, filepath.FromSlash(m.Path)+"@"+v)))
				at := filepath.Join(cache, "cache", "download", filepath.FromSlash(m.Path), "@v")
				files, err := filepath.Glob(filepath.Join(at, v+".*"))
				// The go command asks for it again.
				errs = append(errs, err, os.RemoveAll(filepath.Join(at, "list")))
				for _, file := range files {
					errs = append(errs, os.Remove(file))
				}
			}
		}
	}
	return errors.Join(append(errs, os.RemoveAll(c.work))...)
}

func (c *consumer) run(dir, name string, args ...string) (string, error) {
	return command(dir, c.env, name, args...)
}

// fromGit tags a clone as publish.txt says, has the go command fetch each module from that, and
// sees that it is the one of the proxy.
func (c *consumer) fromGit() error {
	bare := filepath.Join(c.work, "origin.git")
	tree := repo(c.w.Root)
	if _, err := tree.git("clone", "--quiet", "--bare", "--local", ".", bare); err != nil {
		return err
	}
	order, err := c.w.order()
	if err != nil {
		return err
	}
	var wanted []string
	for _, m := range order {
		if _, err := repo(bare).git("tag", m.tag(c.version), "release/"+c.version); err != nil {
			return err
		}
		wanted = append(wanted, m.Path+"@"+c.version)
	}
	config := filepath.Join(c.work, "gitconfig")
	text := fmt.Sprintf("[url %q]\n\tinsteadOf = https://%s\n", "file://"+bare, c.w.Path)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	env := slices.Concat(c.env, []string{"GOPROXY=direct", "GIT_CONFIG_GLOBAL=" + config, "GOMODCACHE=" + filepath.Join(c.work, "from-git"), "GOVCS=*:git"})
	out, err := command(c.work, env, "go", append([]string{"mod", "download", "-json"}, wanted...)...)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var got struct{ Path, Version, Sum, GoModSum string }
		if err := d.Decode(&got); err != nil {
			return err
		}
		of := module.Version{Path: got.Path, Version: got.Version}
		base, err := proxy(filepath.Join(c.dir, "proxy")).base(of)
		if err != nil {
			return err
		}
		want, err := hashes(of, base)
		if err != nil {
			return err
		}
		if have := of.Path + " " + of.Version + " " + got.Sum; have != want[0] {
			return fmt.Errorf("from git it is\n  %s\nand from the proxy\n  %s", have, want[0])
		}
	}
	return nil
}

// complete has the go command load each published module's packages and tests by what stands in its
// go.mod and go.sum.
func (c *consumer) complete() error {
	for _, m := range c.w.Modules {
		if !m.Published {
			continue
		}
		env := slices.Concat(c.env, []string{"GOFLAGS=-mod=readonly -modcacherw -buildvcs=false"})
		if _, err := command(c.w.file(m.Dir), env, "go", "list", "-deps", "-test", "./..."); err != nil {
			return err
		}
	}
	return nil
}
