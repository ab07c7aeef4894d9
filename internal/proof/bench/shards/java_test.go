package shards

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// javaProgram returns the folder with a program below testdata, built from the sources as they are, outside the checkout. Its libraries
// are what pom.xml names, by the hashes of jars.sha256.
func javaProgram(ctx context.Context, name string, java ...string) (string, error) {
	sources, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range append([]string{"pom.xml", "jars.sha256"}, java...) {
		text, err := os.ReadFile(filepath.Join(sources, file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", file, len(text), text)
	}
	cache := os.Getenv("LEASEHOLD_CACHE")
	if cache == "" {
		if cache, err = os.UserCacheDir(); err != nil {
			return "", err
		}
		cache = filepath.Join(cache, "leasehold")
	}
	dir := filepath.Join(cache, "neighbours", fmt.Sprintf("%s-%.8x", name, sum.Sum(nil)))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), name+"-draft-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(draft) }()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-e", "-c", `
		sources=$1 draft=$2
		shift 2
		mvn -q -B -f "$sources/pom.xml" dependency:copy-dependencies -DoutputDirectory="$draft/libs"
		(cd "$draft/libs" && sha256sum --check --strict --quiet "$sources/jars.sha256")
		[ "$(ls "$draft/libs" | wc -l)" = "$(wc -l <"$sources/jars.sha256")" ]
		cd "$sources"
		javac -nowarn -cp "$draft/libs/*" -d "$draft/classes" "$@"`, "build", sources, draft}, java...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s (it needs mvn, javac and java): %w\n%s", name, err, out)
	}
	return dir, os.Rename(draft, dir)
}

// javaCommand returns the command that runs a class of such a program.
func javaCommand(ctx context.Context, dir, class string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "java", append([]string{
		"-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF",
		"-cp", filepath.Join(dir, "classes") + ":" + filepath.Join(dir, "libs", "*"), class,
	}, args...)...)
}
