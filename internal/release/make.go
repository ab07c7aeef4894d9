package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// order says what is to be released.
type order struct {
	Repo     repo
	Version  string
	Into     string // the folder of the release
	Tree     string // the folder for the clone that has the release's commit
	Date     string // the day of the release
	Rehearse bool   // for CI: any commit may be rehearsed, and nobody tags what comes out
	Again    bool   // the release that the version's tag has, from what it was made of
	Out      io.Writer
}

// make makes the release.
func (o order) make() error {
	base, err := o.base()
	if err != nil {
		return err
	}
	if err := o.allowed(); err != nil {
		return err
	}
	r, err := o.Repo.clone(o.Tree, base)
	if err != nil {
		return err
	}
	w, err := load(string(r))
	if err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	if !o.Rehearse {
		if err := o.compatible(w); err != nil {
			return err
		}
	}
	return o.write(r, w)
}

// base returns the commit that the release is made of.
func (o *order) base() (string, error) {
	if err := checkVersion(o.Version); err != nil {
		return "", err
	}
	if !o.Again {
		return o.Repo.git("rev-parse", "HEAD")
	}
	base, err := o.Repo.git("rev-parse", "--verify", "--quiet", o.Version+"~2")
	if err != nil {
		return "", fmt.Errorf("--again %s: there is no such tag with two commits below it: fetch it, with its history", o.Version)
	}
	when, err := o.Repo.git("show", "--no-patch", "--format=%cI", o.Version+"^{commit}")
	if err != nil {
		return "", err
	}
	day, err := time.Parse(time.RFC3339, when)
	o.Date = day.UTC().Format(time.DateOnly)
	return base, err
}

// allowed returns an error that says why this version can't be released from this checkout.
func (o order) allowed() error {
	if o.Into == "" {
		return errors.New("--into is missing: want a folder that is not there yet")
	}
	if entries, err := os.ReadDir(o.Into); err == nil && len(entries) > 0 {
		return fmt.Errorf("--into %s: the folder is not empty: remove it, or name another", o.Into)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--into %s: %w: name a folder that is not there yet", o.Into, err)
	}
	if o.Rehearse {
		return nil
	}
	if !o.Again {
		if err := o.Repo.clean(); err != nil {
			return err
		}
	}
	before, err := o.before()
	if err != nil {
		return err
	}
	if before != "" && semver.Compare(o.Version, before) <= 0 {
		return fmt.Errorf("version %s is not above %s, the last that is tagged: take a higher one", o.Version, before)
	}
	return nil
}

// before returns the version that was released last, or "".
func (o order) before() (string, error) {
	tags, err := o.Repo.tags("v*")
	if err != nil {
		return "", err
	}
	var others []string
	for _, tag := range tags {
		if !o.Again || semver.Compare(tag, o.Version) < 0 {
			others = append(others, tag)
		}
	}
	return last(others), nil
}

// write fills the folder of the release.
func (o order) write(r repo, w *Workspace) error {
	env, err := r.signature(o.Date)
	if err != nil {
		return err
	}
	base, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Into, 0o755); err != nil {
		return err
	}
	if err := o.changelog(w); err != nil {
		return err
	}
	logged, err := r.commit(env, "release: write the changelog of "+o.Version)
	if err != nil {
		return err
	}
	if err := w.rewrite(o.Version); err != nil {
		return err
	}
	when, err := r.git("show", "--no-patch", "--format=%cI", logged)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return err
	}
	if err := proxy(filepath.Join(o.Into, "proxy")).publish(w, r, o.Version, at.UTC()); err != nil {
		return err
	}
	made, err := r.commit(env, "release: require siblings at "+o.Version+"\n\nThis commit is tagged, and on no branch: the next one requires them at "+development+" again.")
	if err != nil {
		return err
	}
	return errors.Join(o.git(r, base, made), o.tell(w, logged, made))
}

func (o order) changelog(w *Workspace) error {
	text, err := os.ReadFile(w.file("CHANGELOG.md"))
	if err != nil {
		return err
	}
	said, err := notes(string(text))
	if err != nil && !o.Rehearse {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Into, "notes.md"), []byte(said), 0o644); err != nil {
		return err
	}
	now, err := released(string(text), o.Version, o.Date)
	if err != nil {
		return err
	}
	return os.WriteFile(w.file("CHANGELOG.md"), []byte(now), 0o644)
}

// git writes the commits, as patches and as a bundle which brings the very same commits.
func (o order) git(r repo, base, made string) error {
	if _, err := r.git("format-patch", "--quiet", "--output-directory", filepath.Join(o.Into, "patches"), base+".."+made); err != nil {
		return err
	}
	branch := "release/" + o.Version
	if _, err := r.git("branch", branch, made); err != nil {
		return err
	}
	_, err := r.git("bundle", "create", "--quiet", filepath.Join(o.Into, "release.bundle"), base+".."+branch)
	return err
}

// tell prints what a maintainer types next, and keeps it in the release.
func (o order) tell(w *Workspace, logged, made string) error {
	if o.Again {
		tagged, err := o.Repo.git("rev-parse", o.Version+"^{commit}")
		if err != nil {
			return err
		}
		if tagged != made {
			return fmt.Errorf("tag %s is commit %s, and what is made of its base is %s: it was not made by scripts/release, or not as it is there", o.Version, tagged, made)
		}
		fmt.Fprintf(o.Out, "tag %s is what is made of its base\n", o.Version)
		return nil
	}
	modules, err := w.order()
	if err != nil {
		return err
	}
	var text, tags strings.Builder
	fmt.Fprintf(&text, "git fetch %s/release.bundle release/%s:release/%s\n", o.Into, o.Version, o.Version)
	fmt.Fprintf(&text, "git merge --ff-only %s   # on main: the changelog\n", logged)
	for _, m := range modules {
		fmt.Fprintf(&text, "git tag %s %s\n", m.tag(o.Version), made)
		fmt.Fprintf(&tags, " %s", m.tag(o.Version))
	}
	// The tag of the root is the one that the workflow waits for, so it comes when the others are
	// there.
	fmt.Fprintf(&text, "git push origin main%s\n", strings.Replace(tags.String(), " "+o.Version, "", 1))
	fmt.Fprintf(&text, "git push origin %s\n", o.Version)
	if o.Rehearse {
		text.Reset()
		text.WriteString("# a rehearsal: not to be tagged\n")
	}
	if err := os.WriteFile(filepath.Join(o.Into, "publish.txt"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%d modules at %s, commit %s. Nothing is published. To publish, once scripts/release-check is content:\n\n%s", len(modules), o.Version, made, text.String())
	return nil
}
