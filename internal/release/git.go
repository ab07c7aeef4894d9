package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is a program's run in a folder. Its environment is this process's, and env.
func command(dir string, env []string, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(append(os.Environ(), "PWD="+dir), env...)
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// repo is a folder under git.
type repo string

func (r repo) git(args ...string) (string, error) {
	out, err := command(string(r), nil, "git", args...)
	return strings.TrimSpace(out), err
}

// clone makes a repository in dir of its own, at the commit, whose worktree is clean.
func (r repo) clone(dir, commit string) (repo, error) {
	if _, err := r.git("clone", "--quiet", "--local", "--no-checkout", ".", dir); err != nil {
		return "", err
	}
	made := repo(dir)
	_, err := made.git("-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit)
	return made, err
}

// tags returns the names of the tags that match the pattern.
func (r repo) tags(pattern string) ([]string, error) {
	out, err := r.git("tag", "--list", pattern)
	return strings.Fields(out), err
}

// clean returns an error when the worktree is not as the commit has it.
func (r repo) clean() error {
	out, err := r.git("status", "--porcelain")
	if err != nil || out == "" {
		return err
	}
	return fmt.Errorf("checkout: not committed is\n%s\ncommit that, or remove it: a release is made of what is committed", out)
}

// signature is who makes the commits of a release, and when. The same base and the same day make
// the same commits, so that a second machine can see that a tag is what it says.
func (r repo) signature(date string) ([]string, error) {
	who, err := r.git("log", "-1", "--format=%cn%n%ce%n%cI", "HEAD")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(who, "\n")
	if len(lines) != 3 {
		return nil, fmt.Errorf("commit HEAD: its committer is %q: want a name, an address and a time", who)
	}
	when, err := commitTime(lines[2], date)
	if err != nil {
		return nil, err
	}
	var env []string
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+role+"_NAME="+lines[0], "GIT_"+role+"_EMAIL="+lines[1], "GIT_"+role+"_DATE="+when)
	}
	return env, nil
}

// commit commits all that is in the worktree, and returns the commit.
func (r repo) commit(env []string, message string) (string, error) {
	if _, err := r.git("add", "--all"); err != nil {
		return "", err
	}
	args := []string{"-c", "commit.gpgSign=false", "-c", "core.hooksPath=" + os.DevNull, "commit", "--quiet", "--message", message}
	if _, err := command(string(r), env, "git", args...); err != nil {
		return "", err
	}
	return r.git("rev-parse", "HEAD")
}

// tree returns the name of the tree that a commit would have now, if nothing but the file, which
// need not be there, changed since the last git add.
func (r repo) tree(changed string) (string, error) {
	if _, err := os.Stat(filepath.Join(string(r), filepath.FromSlash(changed))); err == nil {
		if _, err := r.git("add", "--", changed); err != nil {
			return "", err
		}
	}
	return r.git("write-tree")
}
