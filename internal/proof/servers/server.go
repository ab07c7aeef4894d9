package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Server is a server that serves, or did so before it was killed.
type Server struct {
	Engine string            // "etcd"
	Addr   string            // host and port
	URL    string            // as the engine's own tools and clients take it
	Env    map[string]string // the environment variables by which the engine's own tools find it
	// What else is needed to reach it, by name: files of TLS, users, tokens.
	Extra map[string]string
	Dir   string // its data, and its log; "" when somebody else started it

	tb      testing.TB
	engine  *engine
	config  config
	ports   []port
	command command
	process *process
	// Dir is not below the folder that was asked for, and goes when the server is stopped.
	apart bool
	parts []*Server // servers that it needs and that live as long as it does
}

// engine is what one kind of server has of its own.
type engine struct {
	name    string // as in scripts/engines
	title   string // as people write it
	ports   int    // how many it listens on; the first is the one of Addr
	options string // which of tls, password, replica and settings it knows, by these words
	secure  bool   // it always speaks TLS
	extra   bool   // tests that want it are skipped where it is missing, even if all is required
	death   syscall.Signal

	// find returns the program, or an error when it is not installed.
	find func() (string, error)
	// plan fills in the server's fields, writes what the program needs into Dir, and returns the
	// program's command.
	plan func(ctx context.Context, s *Server, program string) (command, error)
	// ready returns an error unless the server serves.
	ready func(ctx context.Context, s *Server) error
	// sweep, if set, takes away what the server leaves in the system when it is killed.
	sweep func(s *Server)
	// adopt fills in the fields of a server that somebody else started from its URL.
	adopt func(s *Server, url string) error
	// adoptBy returns what adopt takes; nil if that is the URL.
	adoptBy func(s *Server) string

	store  func(s *Server) Store
	page   Page
	client client
}

// command is how to start a program.
type command struct {
	args []string
	as   *account
}

// Names returns what the engines are called in [Launch] and in scripts/engines.
func Names() []string {
	var all []string
	for _, e := range engines {
		all = append(all, e.name)
	}
	return all
}

// Launch starts a server with its data below dir, which must not be in use, and returns when it
// serves. The caller stops it. It returns [ErrMissing] when the server's program is not installed.
func Launch(ctx context.Context, name, dir string, opts ...Option) (*Server, error) {
	for _, e := range engines {
		if e.name == name {
			return launch(ctx, e, dir, configure(opts))
		}
	}
	return nil, fmt.Errorf("no engine is called %q: it is one of %s", name, strings.Join(Names(), ", "))
}

// ErrMissing is the error of a server whose program is not installed.
var ErrMissing = errors.New("not installed")

func (e *engine) missing(err error) error {
	return fmt.Errorf("%s: %w (%v): run scripts/engines install %s", e.title, ErrMissing, err, e.name)
}

// check returns an error for an option that the engine doesn't know.
func (e *engine) check(c config) error {
	for word, asked := range map[string]bool{
		"tls": c.tls, "password": c.password != "", "replica": c.primary != nil, "settings": len(c.settings) > 0,
	} {
		if asked && !strings.Contains(e.options, word) {
			return fmt.Errorf("%s has no option for %s here: its options are: %s", e.title, word, e.options)
		}
	}
	return nil
}

// attempts is how often a server is set up anew when it ends before it serves: somebody without
// this package may have taken its port.
const attempts = 3

func launch(ctx context.Context, e *engine, dir string, c config) (*Server, error) {
	if err := e.check(c); err != nil {
		return nil, err
	}
	program, err := e.find()
	if err != nil {
		return nil, e.missing(err)
	}
	for n := 1; ; n++ {
		s := &Server{
			Engine: e.name, engine: e, config: c, Dir: filepath.Join(dir, fmt.Sprintf("%s-%d", e.name, n)),
			Env: map[string]string{}, Extra: map[string]string{},
		}
		err := s.setUp(ctx, program)
		if err == nil {
			return s, nil
		}
		s.Stop()
		if n == attempts || !errors.Is(err, errEnded) || ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", e.title, err)
		}
	}
}

func (s *Server) setUp(ctx context.Context, program string) error {
	if err := s.prepare(); err != nil {
		return err
	}
	var err error
	s.command, err = s.engine.plan(ctx, s, program)
	if err != nil {
		return err
	}
	return s.start(ctx)
}

// prepare gives the server its folder, its ports and its certificates.
func (s *Server) prepare() error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	for range s.engine.ports {
		p, err := reserve()
		if err != nil {
			return err
		}
		s.ports = append(s.ports, p)
	}
	s.Addr = s.ports[0].addr()
	if s.config.tls || s.engine.secure {
		return s.certify()
	}
	return nil
}

// start starts the program and waits until it serves.
func (s *Server) start(ctx context.Context) error {
	if err := s.run(); err != nil {
		return err
	}
	return s.serves(ctx)
}

// run starts the program.
func (s *Server) run() error {
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.command.args[0], s.command.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, log, log
	cmd.SysProcAttr = attributes(s.death(), s.command.as)
	s.process, err = spawn(cmd)
	return err
}

// errEnded is the error of a server that ended before it served.
var errEnded = errors.New("ended before it served")

// serves waits until the server that was started serves.
func (s *Server) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.awaitReady(ctx, s.process.done)
	switch {
	case s.process.ended():
		return fmt.Errorf("%w: %v\n%s", errEnded, s.process.err, s.logTail())
	case err != nil:
		return fmt.Errorf("does not serve: %w\n%s", err, s.logTail())
	}
	return nil
}

// awaitReady waits until the server serves, the context ends, or ended is closed. Its error is the
// last that says what was wrong with the server.
func (s *Server) awaitReady(ctx context.Context, ended <-chan struct{}) error {
	var last error
	for {
		err := s.engine.ready(ctx, s)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return cmp.Or(last, err)
		}
		last = err
		select {
		case <-ended:
			return last
		default:
			pause(tick)
		}
	}
}

func (s *Server) death() syscall.Signal {
	if s.engine.death != 0 {
		return s.engine.death
	}
	return sigKill
}

// Stop kills the server and what it needs, and gives its ports back. Tests don't call it.
func (s *Server) Stop() {
	if s.process != nil && !s.process.ended() {
		s.end()
	}
	if s.process != nil && s.engine.sweep != nil {
		s.engine.sweep(s)
	}
	for _, part := range slices.Backward(s.parts) {
		part.Stop()
	}
	for _, p := range s.ports {
		p.release()
	}
	s.ports = nil
	if s.apart {
		_ = os.RemoveAll(s.Dir)
	}
}

// end ends the process: by the signal that has it tidy up the system's resources, if there is one,
// else by force.
func (s *Server) end() {
	if s.engine.death != 0 {
		s.process.thaw()
		signalOne(s.process.pid, s.engine.death)
		ctx, cancel := context.WithTimeout(context.Background(), patience/12)
		defer cancel()
		select {
		case <-s.process.done:
		case <-ctx.Done():
		}
	}
	s.process.kill()
}

// LogFile is the file with all that the server printed.
func (s *Server) LogFile() string { return filepath.Join(s.Dir, "log") }

// logTail is the end of the log, for errors.
func (s *Server) logTail() string {
	text, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	const most = 60
	if len(lines) > most {
		lines = append([]string{"…"}, lines[len(lines)-most:]...)
	}
	return strings.Join(lines, "\n")
}

// lines writes the settings into text, a line each, sorted by name.
func (c *config) lines(format string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		fmt.Fprintf(&b, format+"\n", name, c.settings[name])
	}
	return b.String()
}

// flags are command-line flags, with the settings in place of those given or beside them.
func (c *config) flags(given map[string]string) []string {
	maps.Copy(given, c.settings)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		all = append(all, "--"+name+"="+given[name])
	}
	return all
}
