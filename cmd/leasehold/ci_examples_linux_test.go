package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ciStep is a step of a job, as GitHub has it.
type ciStep struct {
	Name, Uses, Run, If string
}

type workflow struct {
	Jobs map[string]struct {
		Needs string
		Steps []ciStep
	}
}

// pipeline is what runs the jobs of the examples.
type pipeline struct {
	place
	t   *testing.T
	env []string // of all jobs
}

func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	p := &pipeline{place: newPlace(t), t: t}
	for _, name := range []string{"deploy.sh", "github.yml", "gitlab.yml"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "examples", "ci", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.path(name), b, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// A deployment that meets another one leaves a trace.
	busy := "#!/bin/bash\nmkdir \"$1.busy\" || { echo \"$1\" >>overlaps; exit 1; }\nsleep 0.1\nrmdir \"$1.busy\"\necho \"$2\" >>\"$1.log\"\n"
	if err := os.WriteFile(p.path("busy"), []byte(busy), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LEASEHOLD_STORE=file:" + p.path("leases.db"), "DEPLOY_DIR=" + p.dir,
		"DEPLOY_WITH=" + p.path("busy"),
	}
	return p
}

func (p *pipeline) yaml(name string, v any) {
	p.t.Helper()
	if err := yaml.Unmarshal([]byte(p.read(name)), v); err != nil {
		p.t.Fatal(err)
	}
}

// bash runs the shell part of a step as the runners of both do.
func (p *pipeline) bash(text string, env []string) error {
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = p.dir, append(append([]string{}, p.env...), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, text, out)
	}
	return nil
}

// github runs a job as GitHub does: a shell for each step, which $GITHUB_ENV connects. After the first step that fails, only those
// run that always do.
func (p *pipeline) github(job string, run int, steps []ciStep) (failed error) {
	temp := p.path(fmt.Sprintf("temp-%s-%d", job, run))
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	vars := filepath.Join(temp, "env")
	env := []string{"GITHUB_ENV=" + vars, "RUNNER_TEMP=" + temp, "GITHUB_REPOSITORY=shop", fmt.Sprintf("GITHUB_RUN_ID=%d", run)}
	for _, s := range steps {
		if s.Run == "" || failed != nil && s.If != "always()" {
			continue
		}
		text, _ := os.ReadFile(vars)
		lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
		if err := p.bash(s.Run, append(lines, env...)); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// Many runs of the workflow, of several repositories: one deploys at a time, and each later one has a higher token.
func TestGitHubExample(t *testing.T) {
	p := newPipeline(t)
	var w workflow
	p.yaml("github.yml", &w)
	if len(w.Jobs) != 2 || w.Jobs["production"].Needs != "staging" {
		t.Fatalf("%+v", w)
	}
	const runs = 4
	var all sync.WaitGroup
	for run := range runs {
		all.Go(func() {
			for _, job := range []string{"staging", "production"} {
				if err := p.github(job, run, w.Jobs[job].Steps); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, target := range []string{"staging", "production", "production-schema"} {
		tokens := strings.Fields(p.read(target + ".log"))
		if len(tokens) != runs {
			t.Errorf("%s: deployed %d times, want %d", target, len(tokens), runs)
		}
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("%s: token %s came after %s", target, tokens[i], tokens[i-1])
			}
		}
	}
	if _, err := os.Stat(p.path("overlaps")); err == nil {
		t.Errorf("two at a time: %s", p.read("overlaps"))
	}

	// A step fails: the name is released all the same. The hold is broken meanwhile: the job fails before it deploys.
	steps := append([]ciStep{}, w.Jobs["production"].Steps...)
	for i, s := range steps {
		if s.Name == "Migrate" {
			steps[i].Run = "false"
		}
	}
	if err := p.github("production", runs, steps); err == nil {
		t.Error("a step that failed fails no job")
	}
	p.must("run", "-n", "deploy/production", "--", "true")
	before := p.read("production.log")
	for i, s := range steps {
		if s.Name == "Migrate" {
			steps[i].Run = `leasehold break deploy/production --token "$LEASEHOLD_TOKEN" --yes`
		}
	}
	if err := p.github("production", runs+1, steps); err == nil || !strings.Contains(err.Error(), "exit status 79") {
		t.Errorf("the hold was broken, and the job ends with %v", err)
	}
	if after := p.read("production.log"); after != before {
		t.Errorf("deployed after the hold was broken: %s", after)
	}
	// And a job that is late all the same is refused by the target.
	if err := p.bash(`./deploy.sh production 1`, nil); err == nil || !strings.Contains(err.Error(), "stale token 1") {
		t.Errorf("%v", err)
	}
}

// Jobs of GitLab: one shell for the script, another one for what comes after it.
func TestGitLabExample(t *testing.T) {
	p := newPipeline(t)
	var file map[string]struct {
		Variables    map[string]string
		BeforeScript []string `yaml:"before_script"`
		Script       []string
		AfterScript  []string `yaml:"after_script"`
	}
	p.yaml("gitlab.yml", &file)
	job := file["deploy"]
	if len(job.BeforeScript) == 0 || len(job.Script) == 0 || len(job.AfterScript) == 0 {
		t.Fatalf("%+v", file)
	}
	run := func(id int, script []string) error {
		env := []string{fmt.Sprintf("CI_JOB_ID=%d", id), "CI_BUILDS_DIR=" + p.dir, "CI_PROJECT_PATH=shop"}
		for name, value := range job.Variables {
			expanded := os.Expand(value, func(v string) string {
				return map[string]string{"CI_BUILDS_DIR": p.dir, "CI_JOB_ID": fmt.Sprint(id)}[v]
			})
			env = append(env, name+"="+expanded)
		}
		err := p.bash(strings.Join(append(append([]string{}, job.BeforeScript...), script...), "\n"), env)
		if after := p.bash(strings.Join(job.AfterScript, "\n"), env); err == nil {
			err = after
		}
		return err
	}
	const runs = 4
	var all sync.WaitGroup
	for id := range runs {
		all.Go(func() {
			if err := run(id, job.Script); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(strings.Fields(p.read("production.log"))); n != runs {
		t.Errorf("deployed %d times, want %d", n, runs)
	}
	if _, err := os.Stat(p.path("overlaps")); err == nil {
		t.Errorf("two at a time: %s", p.read("overlaps"))
	}
	// Without the name, nothing is deployed.
	p.must("acquire", "deploy/production", "--hold", "other", "--ttl", "10m")
	script := append([]string{}, job.Script...)
	script[0] = strings.Replace(script[0], "-w 20m", "-n", 1)
	before := p.read("production.log")
	if err := run(runs, script); err == nil || !strings.Contains(err.Error(), "exit status 75") {
		t.Errorf("%v", err)
	}
	if after := p.read("production.log"); after != before {
		t.Errorf("deployed without the name: %s", after)
	}
	p.must("release", "--hold", "other")
}

// On a runner without the command, both examples get it out of an archive as a release has it.
func TestCIExamplesInstallTheCommand(t *testing.T) {
	program, err := exec.LookPath("leasehold")
	if err != nil {
		t.Fatal(err)
	}
	p := newPipeline(t)
	if err := os.MkdirAll(p.path("leasehold_1.2.3_linux_amd64"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, p.path("leasehold_1.2.3_linux_amd64/leasehold")); err != nil {
		t.Fatal(err)
	}
	if err := p.bash("tar -czhf a.tar.gz leasehold_1.2.3_linux_amd64", nil); err != nil {
		t.Fatal(err)
	}
	var w workflow
	p.yaml("github.yml", &w)
	var file map[string]struct {
		Variables    map[string]string
		BeforeScript []string `yaml:"before_script"`
	}
	p.yaml("gitlab.yml", &file)
	env := []string{
		"PATH=/usr/bin:/bin", "LEASEHOLD_ARCHIVE=file://" + p.path("a.tar.gz"),
		"RUNNER_TEMP=" + p.dir, "GITHUB_PATH=" + p.path("paths"), "TOOLS=" + p.path("tools"),
	}
	for _, job := range []string{"staging", "production"} {
		install := w.Jobs[job].Steps[1]
		if install.Name != "Install leasehold" {
			t.Fatalf("%+v", install)
		}
		if err := errors.Join(p.bash(install.Run, env), p.bash(`PATH=$PATH:$(cat paths); [ "$(command -v leasehold)" = "$RUNNER_TEMP/leasehold" ]`, env)); err != nil {
			t.Errorf("%s: %v", job, err)
		}
		if err := errors.Join(os.Remove(p.path("leasehold")), os.Remove(p.path("paths"))); err != nil {
			t.Error(err)
		}
	}
	if err := p.bash(strings.Join(file["deploy"].BeforeScript, "\n")+"\nleasehold version >version", env); err != nil {
		t.Error(err)
	}
}
