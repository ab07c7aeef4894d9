package interop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is a neighbour's program: what it is made of, and how.
type program struct {
	name    string
	needs   []string // commands
	sources []string // below ../testdata
	// build makes it in an empty folder, and command returns how to start what was made there.
	build   func(ctx context.Context, sources, dir string) *exec.Cmd
	command func(dir string) []string

	once sync.Once
	dir  string
	skip string // why it can't be built here
	err  error
}

var rust = &program{
	name: "dynamodb-lease", needs: []string{"cargo", "cc"}, sources: []string{"rust/Cargo.toml", "rust/Cargo.lock", "rust/src/main.rs"},
	build: func(ctx context.Context, sources, dir string) *exec.Cmd {
		return exec.CommandContext(ctx, "cargo", "build", "--locked", "--quiet",
			"--manifest-path", filepath.Join(sources, "rust", "Cargo.toml"), "--target-dir", filepath.Join(dir, "target"))
	},
	command: func(dir string) []string {
		return []string{filepath.Join(dir, "target", "debug", "leasehold-neighbour")}
	},
}

var java = &program{
	name: "dynamodb-lock-client", needs: []string{"mvn", "javac", "java"}, sources: []string{"java/pom.xml", "java/Neighbour.java"},
	build: func(ctx context.Context, sources, dir string) *exec.Cmd {
		libs := filepath.Join(dir, "libs")
		script := `mvn -q -B -f "$1/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2" && javac -cp "$2/*" -d "$2/../classes" "$1/java/Neighbour.java"`
		return exec.CommandContext(ctx, "sh", "-c", script, "build", sources, libs)
	},
	command: func(dir string) []string {
		return []string{
			"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-cp", filepath.Join(dir, "classes") + ":" + filepath.Join(dir, "libs", "*"), "Neighbour",
		}
	},
}

var golang = &program{
	name: "dynamolock", needs: []string{"go"}, sources: []string{"go/go.mod", "go/go.sum", "go/main.go"},
	build: func(ctx context.Context, sources, dir string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(sources, "go"), "-o", filepath.Join(dir, "neighbour"), ".")
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly") // its libraries are not those of this workspace
		return cmd
	},
	command: func(dir string) []string { return []string{filepath.Join(dir, "neighbour")} },
}

// ready builds the program unless that was done before, and returns how to start it. It skips the test where a tool is
// missing, or fails it where everything is required.
func (p *program) ready(t testing.TB) []string {
	t.Helper()
	p.once.Do(p.make)
	if p.skip != "" && os.Getenv("LEASEHOLD_TEST_REQUIRE") != "all" {
		t.Skip("not tried here: ", p.skip)
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.command(p.dir)
}

func (p *program) make() {
	for _, tool := range p.needs {
		if _, err := exec.LookPath(tool); err != nil {
			p.skip = fmt.Sprintf("the neighbour %s can't be built: install %s", p.name, strings.Join(p.needs, ", "))
			p.err = fmt.Errorf("%s: %w", p.skip, err)
			return
		}
	}
	p.dir, p.err = p.built()
}

// built returns the folder with the program, built from the sources as they are.
func (p *program) built() (string, error) {
	sources, err := filepath.Abs(filepath.Join("..", "testdata"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range p.sources {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%.8x", p.name, sum.Sum(nil)))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	draft, err := os.MkdirTemp(cache, p.name+"-draft-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(draft) }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cmd := p.build(ctx, sources, draft)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the neighbour %s: %v: %w\n%s", p.name, cmd, err, out)
	}
	if err := os.Rename(draft, dir); err != nil {
		if _, statErr := os.Stat(dir); statErr != nil { // nobody else was first
			return "", err
		}
	}
	return dir, nil
}

// TestNeighboursAreBuilt does nothing else, so that who wants their libraries fetched before all other tests can have that.
func TestNeighboursAreBuilt(t *testing.T) {
	for _, p := range []*program{rust, java, golang} {
		t.Run(p.name, func(t *testing.T) { p.ready(t) })
	}
}

// cacheDir is where neighbours are built, outside the checkout, as the servers of scripts/engines are.
func cacheDir() (string, error) {
	if dir := os.Getenv("LEASEHOLD_CACHE"); dir != "" {
		return filepath.Join(dir, "neighbours"), nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "leasehold", "neighbours"), err
}
