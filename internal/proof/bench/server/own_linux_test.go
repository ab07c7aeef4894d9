package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// BenchmarkOwnClients is pairs with a name each, by the clients that programs have: net/http's, which keeps its connections, for
// Leasehold; rdlm-py, which opens one for each request, for RDLM, and for Leasehold, which speaks its protocol, too.
func BenchmarkOwnClients(b *testing.B) {
	for _, server := range rivals[:2] {
		b.Run("server="+server.name, func(b *testing.B) {
			_, addr, _ := server.start(b)
			for _, clients := range []int{1, 32, 512} {
				if server.name == "leasehold" {
					b.Run(fmt.Sprintf("mode=nethttp/clients=%d", clients), func(b *testing.B) { pairs(b, programsOf(addr, clients), false, false) })
				}
				b.Run(fmt.Sprintf("mode=rdlmpy/clients=%d", clients), func(b *testing.B) { pythonPairs(b, addr, clients, server.name != "leasehold") })
			}
		})
	}
}

// program is a client as a program in Go has it.
type program struct {
	client *http.Client
	base   string
}

func programsOf(addr string, n int) (all []locker) {
	client := newClient(n)
	for range n {
		all = append(all, program{client, "http://" + addr + "/v1/leases/"})
	}
	return all
}

func (p program) ask(method, name, term, body string) (string, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, p.base+name, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if term != "" {
		sequencer, secret, _ := strings.Cut(term, " ")
		req.Header.Set("Leasehold-Sequencer", sequencer)
		req.Header.Set("Leasehold-Secret", secret)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %s", method, name, resp.Status, text)
	}
	return resp.Header.Get("Leasehold-Sequencer") + " " + resp.Header.Get("Leasehold-Secret"), err
}

func (p program) lock(name string) (string, error) {
	return p.ask(http.MethodPost, name, "", `{"ttl": 60, "wait": 600}`)
}

func (p program) unlock(name, term string) error {
	_, err := p.ask(http.MethodDelete, name, term, "")
	return err
}

// pythonPairs has clients in Python do b.N pairs, or some more, in as many processes as there are processors: one runs one thread at a time.
func pythonPairs(b *testing.B, addr string, clients int, peer bool) {
	b.Helper()
	dir, err := servers.Cache()
	if err != nil {
		b.Fatal(err)
	}
	python := filepath.Join(filepath.Dir(dir), "rdlm-py", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		b.Skipf("skipped: %v: run scripts/rdlm-client", err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	type process struct {
		in  io.WriteCloser
		out *bufio.Reader
		cmd *exec.Cmd
	}
	var all []process
	count, each := min(clients, runtime.NumCPU()), (b.N+clients-1)/clients
	for i := range count {
		mine := share(clients, count, i)
		cmd := exec.CommandContext(b.Context(), python, "testdata/pairs.py", port, strconv.Itoa(i*clients), strconv.Itoa(mine), strconv.Itoa(each))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err1 != nil || err2 != nil {
			b.Fatal(err1, err2)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		all = append(all, process{in, bufio.NewReader(out), cmd})
	}
	for _, p := range all {
		if line, err := p.out.ReadString('\n'); err != nil {
			b.Fatal(line, err)
		}
	}
	b.ResetTimer()
	for _, p := range all {
		_ = p.in.Close()
	}
	var r result
	for _, p := range all {
		text, err := io.ReadAll(p.out)
		if err == nil {
			err = p.cmd.Wait()
		}
		if err == nil {
			err = r.read(string(text))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	r.report(b, clients, peer)
}

// read adds what pairs.py says.
func (r *result) read(text string) error {
	for word := range strings.FieldsSeq(text) {
		word, resets := strings.CutPrefix(word, "reset:")
		n, err := strconv.Atoi(word)
		switch {
		case err != nil:
			return err
		case resets:
			r.reset += n
		default:
			r.took = append(r.took, time.Duration(n)*time.Microsecond)
		}
	}
	return nil
}
