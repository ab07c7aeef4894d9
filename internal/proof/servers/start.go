package servers

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// start gets a server for a test: a new one, the shared one, or one that is up.
func start(t testing.TB, e *engine, opts []Option) *Server {
	t.Helper()
	c := configure(opts)
	url := os.Getenv(variable(e))
	if c.shared {
		if url != "" && !c.own() {
			return adopt(t, e, url)
		}
		return share(t, e, c)
	}
	s, err := launch(t.Context(), e, t.TempDir(), c)
	if errors.Is(err, ErrMissing) && url != "" && !c.own() {
		return adopt(t, e, url)
	}
	if err != nil {
		fail(t, e, err)
	}
	s.belongTo(t)
	return s
}

// belongTo has the server end with the test.
func (s *Server) belongTo(t testing.TB) {
	s.tb = t
	t.Cleanup(func() {
		s.showLog(t)
		s.Stop()
	})
}

// variable is the environment variable with the URL of a server that is up.
func variable(e *engine) string { return "LEASEHOLD_TEST_" + strings.ToUpper(e.name) + "_URL" }

// Variable returns the environment variable by which tests find this server when it is up, and its
// value.
func (s *Server) Variable() (name, value string) {
	if s.engine.adoptBy != nil {
		return variable(s.engine), s.engine.adoptBy(s)
	}
	return variable(s.engine), s.URL
}

// fail ends a test for want of its server: by skipping it when the program is not installed, unless
// all is required.
func fail(t testing.TB, e *engine, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && (e.extra || os.Getenv("LEASEHOLD_TEST_REQUIRE") != "all") {
		t.Skipf("not tried here: %v", err)
	}
	t.Fatal(err)
}

// adopt takes a server that somebody else started.
func adopt(t testing.TB, e *engine, url string) *Server {
	t.Helper()
	s := &Server{Engine: e.name, URL: url, Env: map[string]string{}, Extra: map[string]string{}, engine: e, tb: t}
	if err := e.adopt(s, url); err != nil {
		t.Fatalf("%s=%q: %v", variable(e), url, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience/12)
	defer cancel()
	if err := s.awaitReady(ctx, nil); err != nil {
		t.Fatalf("%s=%q: %v", variable(e), url, err)
	}
	return s
}

func (s *Server) showLog(t testing.TB) {
	if t.Failed() {
		t.Logf("the log of %s:\n%s", s.engine.title, s.logTail())
	}
}

// Kill ends the server, and all its processes, with SIGKILL. Nothing that it holds in memory is
// written.
func (s *Server) Kill() {
	s.tb.Helper()
	s.mustBeOwn("killed")
	s.Crash()
}

// Crash is [Server.Kill] for what [Launch] has started, which is no test's.
func (s *Server) Crash() { s.process.kill() }

// Pause stops the server with SIGSTOP: its connections stay open, and nobody answers from the
// moment when it returns.
func (s *Server) Pause() {
	s.tb.Helper()
	s.mustBeOwn("paused")
	s.process.rest()
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.tb.Helper()
	s.mustBeOwn("resumed")
	s.process.thaw()
}

// Restart starts the server again, on the same data and ports, and returns when it serves. One that
// still runs is killed first.
func (s *Server) Restart() {
	s.tb.Helper()
	s.mustBeOwn("restarted")
	// Not the test's context: a cleanup may restart a server, too.
	if err := s.Revive(context.Background()); err != nil {
		s.tb.Fatalf("%s: restart: %v", s.engine.title, err)
	}
}

// Revive is [Server.Restart] for what [Launch] has started, which is no test's.
func (s *Server) Revive(ctx context.Context) error {
	s.process.kill()
	return s.start(ctx)
}

// mustBeOwn ends the test when the server belongs to others as well.
func (s *Server) mustBeOwn(what string) {
	s.tb.Helper()
	switch {
	case s.config.shared:
		s.tb.Fatalf("%s is shared with other tests and can't be %s: ask for one without Shared", s.engine.title, what)
	case s.process == nil && os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all":
		s.tb.Fatalf("%s can't be %s: %s names one that others use, and its program is not installed", s.engine.title, what, variable(s.engine))
	case s.process == nil:
		s.tb.Skipf("not tried here: %s can't be %s: %s names one that others use", s.engine.title, what, variable(s.engine))
	}
}
