package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// state is the folder through which the commands and the process in the background meet.
type state struct{ dir string }

func (s state) file(name string) string { return filepath.Join(s.dir, name) }

// running reports whether the process in the background runs.
func (s state) running() (bool, error) {
	lock, err := servers.Lock(s.file("lock"))
	if errors.Is(err, servers.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

var errDown = errors.New("nothing is up: scripts/engines up brings the servers up")

// up starts the process in the background and waits until all servers serve.
func (s state) up(names []string) error {
	running, err := s.running()
	if err != nil {
		return err
	}
	if running {
		fmt.Fprintln(os.Stderr, "engines: they are up already")
		return s.printURLs()
	}
	for _, name := range []string{"urls", "log"} {
		if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{"serve"}, names...)...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, apart()
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says more
		close(ended)
	}()
	for {
		select {
		case <-ended:
			text, err := os.ReadFile(s.file("log"))
			return errors.Join(fmt.Errorf("they did not come up:\n%s", bytes.TrimSpace(text)), err)
		default:
		}
		if _, err := os.Stat(s.file("urls")); err == nil {
			break
		}
		pause()
	}
	text, err := os.ReadFile(s.file("log"))
	if err != nil {
		return err
	}
	fmt.Fprint(os.Stderr, string(text))
	return s.printURLs()
}

// printURLs prints what serve wrote. It waits for that while the servers come up.
func (s state) printURLs() error {
	for {
		text, err := os.ReadFile(s.file("urls"))
		running, runErr := s.running()
		switch {
		case runErr != nil:
			return runErr
		case !running:
			return errDown
		case err == nil:
			// Apart from the lines for a shell, for people.
			stores, err := os.ReadFile(s.file("stores"))
			fmt.Fprint(os.Stderr, string(stores))
			fmt.Print(string(text))
			return err
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
		pause()
	}
}

// down ends the process in the background and waits until its servers are gone.
func (s state) down() error {
	running, err := s.running()
	if err != nil {
		return err
	}
	if !running {
		return errDown
	}
	text, err := os.ReadFile(s.file("pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	for running && err == nil {
		pause()
		running, err = s.running()
	}
	return err
}

// pause waits a little.
func pause() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	<-ctx.Done()
}
