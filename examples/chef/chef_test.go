package chef

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// site is a lock server, and the folder of the nodes that use it.
type site struct {
	t        *testing.T
	dir, url string
}

// leasehold is the path of the command.
var leasehold string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "chef")
	if err == nil {
		leasehold = filepath.Join(dir, "leasehold")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", leasehold, "github.com/leasehold/leasehold/cmd/leasehold").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func newSite(t *testing.T) *site {
	t.Helper()
	if _, err := exec.LookPath("ruby"); err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal("ruby is missing: install the package ruby")
		}
		t.Skip("skipped: ruby is missing: install the package ruby")
	}
	s := &site{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.dir, "nodes"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.serve()
	return s
}

var serving = regexp.MustCompile(`on (http://\S+)`)

// serve starts a server, which ends with the test.
func (s *site) serve() {
	s.t.Helper()
	cmd := exec.Command(leasehold, "serve", "--store", "file:"+filepath.Join(s.dir, "leases.db"), "--listen", "127.0.0.1:0")
	words, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(words)
	for s.url == "" && lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			s.url = m[1]
		}
	}
	if s.url == "" {
		s.t.Fatal("the server doesn't say where it is")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() { // so that it can go on talking
		}
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-drained
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
			s.t.Error(err)
		}
	})
}

func (s *site) ruby(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ruby", args...)
	cmd.Env = append(os.Environ(), "LEASEHOLD_URL="+s.url)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// converge runs the recipe for a node, and returns what it prints: the node's number.
func (s *site) converge(name string) (string, error) {
	return s.ruby("run.rb", filepath.Join(s.dir, "nodes"), name)
}

// node writes the attributes of a node.
func (s *site) node(name string, attributes map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"name": name, "normal": map[string]any{"leasehold": attributes}})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "nodes", name+".json"), text, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// must returns the node's number.
func (s *site) must(name string) string {
	s.t.Helper()
	id, err := s.converge(name)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, id)
	}
	return id
}

// Nodes that converge at the same time have different numbers; each has the same one at the next run, also when its attributes are lost.
func TestEachNodeHasANumberOfItsOwn(t *testing.T) {
	s := newSite(t)
	const nodes = 12
	var mu sync.Mutex
	ids := map[string]string{} // by node
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			name := fmt.Sprintf("web%d.example.com", i)
			id, err := s.converge(name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, id)
			}
			ids[name] = id
		})
	}
	wg.Wait()
	seen := map[string]string{}
	for name, id := range ids {
		if other, twice := seen[id]; twice {
			t.Errorf("%s and %s both have %s", name, other, id)
		}
		seen[id] = name
	}
	if err := os.Remove(filepath.Join(s.dir, "nodes", "web3.example.com.json")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web0.example.com", "web3.example.com"} {
		if again := s.must(name); again != ids[name] {
			t.Errorf("%s had %s, and has %s", name, ids[name], again)
		}
	}
}

// A number that a node has already is kept, unless another one has it, which is told; so are duplicates that were there before, and
// a range that is used up.
func TestNumbersThatWereThereBefore(t *testing.T) {
	s := newSite(t)
	s.node("old", map[string]any{"server_id": 2, "max": 3})
	if id := s.must("old"); id != "2" {
		t.Errorf("it had 2, and has %s", id)
	}
	s.node("twin", map[string]any{"server_id": 2, "max": 3})
	if out, err := s.converge("twin"); err == nil || !strings.Contains(out, "twin has leasehold.server_id 2, which can't be kept") || !strings.Contains(out, "held by old") {
		t.Errorf("it has another one's: %v\n%s", err, out)
	}
	if out, err := s.converge("old"); err == nil || !strings.Contains(out, "more than one node has the same leasehold.server_id") || !strings.Contains(out, "twin") {
		t.Errorf("another one has the same: %v\n%s", err, out)
	}
	s.node("twin", map[string]any{"max": 3})
	s.node("third", map[string]any{"max": 3})
	if a, b := s.must("twin"), s.must("third"); a == b || a == "2" || b == "2" {
		t.Errorf("2, %s and %s", a, b)
	}
	s.must("old")
	s.node("fourth", map[string]any{"max": 3})
	if out, err := s.converge("fourth"); err == nil || !strings.Contains(out, "Identity range is exhausted") {
		t.Errorf("the fourth of three: %v\n%s", err, out)
	}
}

// The values are those of the array, as of the cookbook that this one replaces: with holes, or names; those of one pool in any order.
func TestFinding_I3_ValuesAreThoseOfTheArray(t *testing.T) {
	for _, values := range [][]any{{1, 2, 9}, {"red", "green"}} {
		s := newSite(t)
		has := map[string]bool{}
		for i := range values {
			has[s.mustWith(values, i)] = true
			values = append(values[1:], values[0]) // in another order
		}
		for _, value := range values {
			if !has[fmt.Sprint(value)] {
				t.Errorf("nobody has %v: %v", value, has)
			}
		}
		name := fmt.Sprint(values[0], "-last")
		s.node(name, map[string]any{"values": values})
		if out, err := s.converge(name); err == nil || !strings.Contains(out, "Identity range is exhausted") {
			t.Errorf("one more than there are values: %v\n%s", err, out)
		}
	}
}

// mustWith returns what a node with that number has, out of those values.
func (s *site) mustWith(values []any, i int) string {
	s.t.Helper()
	name := fmt.Sprint("web", i)
	s.node(name, map[string]any{"values": values})
	return s.must(name)
}

// The duplicates are values as the nodes have them, integers or names, as are the values that are assigned.
func TestFinding_I3_DuplicatesAreValuesOfTheirType(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ values, value, want string }{
		{"[1, 2, 9]", "9", `[9, {9=>["a", "b"]}, {}]`},
		{"1...4", "3", `[3, {3=>["a", "b"]}, {}]`},
		{"%w[red blue]", `"red"`, `["red", {"red"=>["a", "b"]}, {}]`},
	} {
		script := fmt.Sprintf(`path = [%q, :id] # each has a pool of its own
			require "./libraries/leasehold"
			Node = Struct.new(:name, :value) do
			  def read(*) = value
			  def write(_, *, value) = self.value = value
			end
			client = Leasehold::Client.new
			a, b = Node.new("a"), Node.new("b", %s)
			a.value = b.value
			id = Leasehold.assign_identity(client, a, path, %s)
			twice = Leasehold.find_duplicate_identity(client, a, path) { [b] }
			none = Leasehold.find_duplicate_identity(client, Node.new("c"), path, only_me: true) { [a, b] }
			p [id, twice, none]`, c.values, c.value, c.values)
		if out, err := s.ruby("-e", script); err != nil || out != c.want {
			t.Errorf("%s: %v\n%s\nwant %s", c.values, err, out, c.want)
		}
	}
	script := `require "./libraries/leasehold"; [[], [1, "1"], ["a", "a"]].each { |v| begin; Leasehold.values_of(v); rescue ArgumentError => e; puts e.message; end }`
	if out, err := s.ruby("-e", script); err != nil || strings.Count(out, "\n") != 2 || strings.Count(out, "twice") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// One section runs at a time, with the exit code of its command.
func TestSections(t *testing.T) {
	s := newSite(t)
	log := filepath.Join(s.dir, "log")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			script := fmt.Sprintf("echo in >>%s; sleep 0.1; echo out >>%s; exit 0", log, log)
			if out, err := s.ruby("section.rb", "deploy", fmt.Sprint("web", i), "sh", "-c", script); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(log)
	if want := strings.Repeat("in\nout\n", 4); err != nil || string(text) != want {
		t.Errorf("%v; sections ran like this:\n%s", err, text)
	}
	if _, err := s.ruby("section.rb", "deploy", "web", "sh", "-c", "exit 3"); err == nil {
		t.Error("a section that fails is fine")
	}
}

// ['a', 'bc'] and ['ab', 'c'] have pools of their own, as has an attribute with a slash in its name.
func TestPitfall_I5_AttributePathsDoNotCollide(t *testing.T) {
	s := newSite(t)
	script := `require "./libraries/leasehold"; puts [%w[a bc], %w[ab c], ["a/b", "c"], ["a", "b/c"]].map { |p| Leasehold.pool_of(p) }.uniq.size`
	if out, err := s.ruby("-e", script); err != nil || out != "4" {
		t.Errorf("%s pools of 4, %v", out, err)
	}
}

// A server that isn't there is named, and a store's outage, after the patience that was asked for.
func TestServerThatIsNotThere(t *testing.T) {
	s := newSite(t)
	script := `require "./libraries/leasehold"; begin; Leasehold::Client.new(url: "http://127.0.0.1:1", patience: 1).assign("p", as: "a"); rescue Leasehold::Unreachable => e; puts e.message; end`
	if out, err := s.ruby("-e", script); err != nil || !strings.HasPrefix(out, "http://127.0.0.1:1: ") || !strings.Contains(out, "refused") {
		t.Errorf("%s, %v", out, err)
	}
}
