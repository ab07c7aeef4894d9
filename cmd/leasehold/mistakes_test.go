package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// mistake is a wrong command line, and what the answer has to say: which field, which value, and what to type instead.
type mistake struct {
	code int
	args []string
	want []string
	env  []string // NAME=VALUE
}

// words splits a command line at its blanks. A word in single quotes may have some.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

func wrong(code int, line string, want ...string) mistake {
	return mistake{code: code, args: words(line), want: want}
}

// with is a mistake that a variable of the environment makes.
func with(variable string, m mistake) mistake {
	m.env = append(m.env, variable)
	return m
}

const (
	usage   = cli.ExitUsage
	own     = cli.ExitOwn
	missing = cli.ExitMissing
)

// mistakes are those of people who use the program for the first time, or come from etcdctl, consul, flock and kubectl.
var mistakes = []mistake{
	// NAME, the double dash and CMD.
	wrong(usage, "run", "NAME and CMD are missing", "leasehold run NAME -- CMD"),
	wrong(usage, "run job", "CMD is missing", "leasehold run job -- CMD"),
	wrong(usage, "run -- true", "NAME is missing", "leasehold run NAME -- true"),
	wrong(usage, "run job true", "double dash is missing", "leasehold run job -- true"),
	wrong(usage, "run job ./job.sh --full", "--full", "leasehold run NAME -- CMD --flag"),
	wrong(usage, "run job --", "CMD is missing after the double dash", "leasehold run job -- CMD"),
	wrong(usage, "run job more -- true", `"more" is one argument too many`, "leasehold run NAME -- CMD"),
	wrong(missing, "run job -- 'sleep 1'", `CMD "sleep 1"`, "leave the quotes out, as in: -- sleep 1", "sh -c 'sleep 1'"),
	wrong(missing, "run job -- 'cd /tmp && ls'", `CMD "cd /tmp && ls"`, "sh -c 'cd /tmp && ls'"),
	wrong(missing, "run job -- script.sh", "script.sh", "write ./script.sh"),
	wrong(126, "run job -- ./script.sh", "./script.sh", "chmod +x"),
	wrong(missing, "run job -- ./absent.sh", "./absent.sh", "not found"),
	{code: usage, args: []string{"run", "", "--", "true"}, want: []string{`NAME ""`, "at least one character"}},
	{code: usage, args: []string{"run", strings.Repeat("x", 300), "--", "true"}, want: []string{`NAME "xxx`, "at most 255 bytes, not 300"}},
	{code: usage, args: []string{"run", "a\nb", "--", "true"}, want: []string{`NAME "a\nb"`, "printable characters only"}},
	wrong(usage, "run .job -- true", `NAME ".job"`, "does not begin with a dot"),

	// Flags of run.
	wrong(usage, "run job --ttl 0 -- true", `--ttl: "0"`, "above 0, such as 20s"),
	wrong(usage, "run job --ttl=-5s -- true", `--ttl: "-5s"`, "above 0, such as 20s"),
	wrong(usage, "run job --ttl 30 -- true", `--ttl: "30"`, "such as 30s: a number needs a unit"),
	wrong(usage, "run job --ttl 30sec -- true", `--ttl: "30sec"`, "such as 20s"),
	wrong(usage, "run job --ttl 400d -- true", `--ttl: "400d"`, "from 10ms to 366d"),
	wrong(usage, "run job --kill-after 1m -- true", "TTL of 20s", "kill-after of 1m0s", "raise --ttl"),
	wrong(usage, "run job -w 10 -- true", `"10" for "-w, --wait"`, "such as 10s"),
	wrong(usage, "run job --wait -- true", "--wait has no value", "--wait DURATION -- CMD"),
	wrong(usage, "run job --wait=-1s -- true", "--wait -1s", "not negative"),
	wrong(usage, "run -n -w 5s job -- true", "--no-wait and --wait exclude each other", "give one"),
	wrong(usage, "run --slots 0 job -- true", "--slots 0", "want 1 to"),
	wrong(usage, "run --slots three job -- true", `--slots "three"`, "want a whole number"),
	wrong(usage, "run --quiet=maybe job -- true", `--quiet "maybe"`, "want true or false"),
	wrong(usage, "cost --write-price cheap", `--write-price "cheap"`, "want a number;"),
	wrong(usage, "run --slots 2 --weight 3 job -- true", "--weight 3", "want 1 to 2"),
	wrong(usage, "run --shared --slots 2 job -- true", "--shared and --slots exclude each other"),
	wrong(usage, "run -E 300 job -- true", `--conflict-exit-code: "300"`, "from 0 to 255"),
	wrong(usage, "run --info novalue job -- true", `--info "novalue"`, "KEY=VALUE"),
	wrong(usage, "run --as a/b job -- true", `--as: "a/b"`, "without a slash"),
	wrong(usage, "run --contain docker job -- true", `--contain: "docker"`, "auto, cgroup"),
	wrong(usage, "run --log-level verbose job -- true", `--log-level: "verbose"`, "debug, info"),
	wrong(usage, "run --tll 5s job -- true", "--tll", "did you mean --ttl?"),
	wrong(usage, "run --onceper 1h job -- true", "--onceper", "did you mean --once-per?"),
	wrong(usage, "run --conflict-exit 3 job -- true", "--conflict-exit", "write --conflict-exit-code"),
	wrong(usage, "run --timeout 5s job -- true", "--timeout", "write -w DURATION"),
	wrong(usage, "run -v job -- true", "'v' in -v", "--log-level debug"),
	wrong(usage, "-V", "'V' in -V", "write --version"),
	wrong(usage, "run --frob job -- true", "--frob", "leasehold run --help"),
	wrong(usage, "run job --ttl", "--ttl has no value", "--ttl STRING"),
	wrong(usage, "run --config x.yaml job -- true", "--config", "LEASEHOLD_CONFIG=FILE"),
	wrong(usage, "run -once-per 1h job -- true", "a long flag has two dashes: write --once-per"),
	wrong(usage, "run -timeout=1m job -- true", "in -timeout=1m", "write -w DURATION"),
	wrong(usage, "run -n 2 job -- true", "-n 2", "write --slots 2"),
	wrong(usage, "run job --as -- true", "--as has no value", "took the double dash", "--as STRING -- CMD"),

	// Cron.
	wrong(usage, "run --tick '0 3 * * * *' job -- true", `--tick "0 3 * * * *"`, "it has 6 fields", "--tick '3 * * * *'"),
	wrong(usage, "run --tick 0 3 job -- true", "--tick 0", "in quotes, as in --tick '0 3 * * *'"),
	wrong(usage, "run --tick '0 3 *' job -- true", `--tick "0 3 *"`, "it has 3 of 5 fields"),
	wrong(usage, "run --tick '0 25 * * *' job -- true", `--tick "0 25 * * *"`, "25: want the hour, from 0 to 23", "minute, hour, day"),
	wrong(usage, "run --tick '0 3 * * *' --tz Berlin job -- true", `--tz "Berlin"`, "such as Europe/Berlin"),
	wrong(usage, "run --tz Europe/Berlin job -- true", "--tz Europe/Berlin", "belongs to --tick"),
	wrong(usage, "run --once-per hour job -- true", `"hour" for "--once-per"`, "such as 20s"),
	wrong(usage, "run --tick '' job -- true", `--tick ""`, "it has 0 of 5 fields"),
	wrong(usage, "run --tick '0 3 31 2 *' job -- true", `--tick "0 3 31 2 *"`, "never comes", "a day of the month that the month has"),
	wrong(usage, "run --tick '0 3 * * MON-SUN' job -- true", "MON-SUN", "write --tick '0 3 * * mon-7'"),
	wrong(usage, "run --once-per 0 job -- true", "--once-per 0s", "want 1s to 366d"),
	wrong(usage, "run --once-per 1h --tick '0 3 * * *' job -- true", "--once-per and --tick exclude each other"),
	wrong(usage, "run --retry-failed job -- true", "--retry-failed", "--once-per DURATION"),
	wrong(usage, "run --once-per 1h --misfire skip job -- true", "--misfire skip", "belongs to --tick"),
	wrong(usage, "run --once-per 1h --splay 2h job -- true", "--splay 2h0m0s", "less than a turn"),

	// The store.
	wrong(usage, "list --store leases.db", `--store: store "leases.db"`, "no scheme", "file:leases.db"),
	wrong(usage, "list --store 127.0.0.1:2379", `"127.0.0.1:2379"`, "no scheme", "etcd://127.0.0.1:2379"),
	wrong(usage, "list --store etcd:127.0.0.1:2379", `"etcd:127.0.0.1:2379"`, "etcd://127.0.0.1:2379"),
	wrong(usage, "list --store consul", `"consul"`, "write consul://"),
	wrong(usage, "list --store mysql://h", `unknown scheme "mysql"`, "known are file:PATH"),
	wrong(usage, "list --store etcd://h:99999", `host "h:99999"`, "a port from 1 to 65535"),
	wrong(usage, "list --store etcd://h?ttl=5s", `unknown parameter "ttl"`, "known are"),
	wrong(usage, "list --store redis://:p@ss/word@h", "redis://:xxxxx@h", "@ as %40"),
	wrong(usage, "list --store postgres://u:p#w@h/db", "postgres://u:xxxxx@h/db", "# as %23"),
	wrong(usage, "list --store file:a.db --store file:b.db", `"file:b.db"`, `"file:a.db": give it once`),
	wrong(usage, "list --store file:", `"file:"`, "the name of a file"),
	wrong(usage, "list --store file://host/x.db", `"file://host/x.db"`, "file:///PATH"),
	wrong(own, "list --store file:absent.db", "absent.db", "is the path right?"),
	wrong(own, "list --store file:folder", "folder", "name a file in it"),
	wrong(own, "list --store file:text.db", "text.db", "not an SQLite database", "name another file"),
	wrong(own, "run --store file:no/x.db job -- true", "no/x.db", "mkdir -p"),
	wrong(own, "list --store file:/proc/leases/x.db", "/proc/leases", "mkdir -p"),
	wrong(own, "list --store http://127.0.0.1:1", "http://127.0.0.1:1", "no lock server listens there", "leasehold serve"),
	wrong(own, "list --store http://127.0.0.1:2379", "127.0.0.1:2379", "the port of etcd: write etcd://127.0.0.1:2379"),
	wrong(own, "list --store etcd://127.0.0.1:1", "etcd at 127.0.0.1:1", "are host and port right?"),
	wrong(own, "list --store http://SERVER", "no answer of a lock server"),
	wrong(own, "list --store http://SERVER", "leasehold serve", "as etcd://"),
	wrong(usage, "list --store psql://h/db", `unknown scheme "psql"`, "write postgres://"),
	wrong(usage, "list --store zookeeper://h", `unknown scheme "zookeeper"`, "write zk://"),
	wrong(usage, "list --store etcds://h", `unknown scheme "etcds"`, "write etcd://…?tls=true"),
	wrong(usage, "list --store 127.0.0.1:12379", "SCHEME://127.0.0.1:12379", "known are file:PATH"),

	// Settings from elsewhere, such as the environment of cron.
	with("PATH=", wrong(missing, "run job -- echo hi", "echo", "PATH is empty", "/usr/bin/echo")),
	with("HOME=home", wrong(own, "list", `"home"`, "no absolute path", "--store file:PATH")),
	with("HOME=/proc/none", wrong(own, "list", "/proc/none", "its folder can't be made", "--store file:PATH or LEASEHOLD_STORE")),
	with("LEASEHOLD_TTL=20", wrong(usage, "run job -- true", `LEASEHOLD_TTL: "20"`, "such as 20s")),
	with("LEASEHOLD_STORE=etcd", wrong(usage, "list", `LEASEHOLD_STORE: store "etcd"`, "write etcd://")),
	with("LEASEHOLD_QUIET=yes", wrong(usage, "list", `LEASEHOLD_QUIET: "yes"`, "true or false")),
	with("LEASEHOLD_CONFIG=absent.yaml", wrong(usage, "list", "LEASEHOLD_CONFIG", "absent.yaml")),
	with("LEASEHOLD_CONFIG=wrong.yaml", wrong(usage, "list", "wrong.yaml:1", `"stroe"`, "known are store")),
	with("LEASEHOLD_STROE=file:x.db", wrong(0, "list", "LEASEHOLD_STROE is no setting", "did you mean LEASEHOLD_STORE?")),

	// Commands, also those of other programs.
	wrong(usage, "lst", `"lst" is no command`, "did you mean list"),
	wrong(usage, "runn job -- true", `"runn" is no command`, "did you mean run?"),
	wrong(usage, "job -- true", `"job" is no command`, "leasehold run job -- CMD"),
	wrong(usage, "get job", `"get" is no command`, "leasehold show NAME"),
	wrong(usage, "ls", `"ls" is no command`, "leasehold list"),
	wrong(usage, "delete job", `"delete" is no command`, "leasehold release NAME --token N"),
	wrong(usage, "lock job -- ./x.sh", `"./x.sh"`, "leasehold run job -- ./x.sh"),
	wrong(usage, "lock job ./x.sh", `"./x.sh"`, "leasehold run job -- ./x.sh"),
	wrong(usage, "lock /tmp/x -c 'echo hi'", "'c' in -c", "leasehold run NAME -- sh -c"),
	wrong(usage, "acquire job --hold f --ttl 5m -- ./x.sh", `"./x.sh"`, "acquire runs no command", "leasehold run job -- ./x.sh"),
	wrong(usage, "kill job", `"kill" is no command`, "leasehold break NAME --token N"),
	wrong(usage, "break job --token 7 --note why", "--note", "write --reason TEXT"),
	wrong(1, "break absent --token 7 --yes", "nobody has ever held absent", "leasehold list"),
	wrong(usage, "lock job --fd -1", "--fd -1", "from 3 on", "leasehold lock --fd 9 job"),
	wrong(usage, "lock job", "--fd is missing", "leasehold lock --fd 9 job"),
	wrong(usage, "acquire job", "--hold is missing", "the file"),
	wrong(usage, "release job", "--token is missing", "leasehold show job"),
	wrong(usage, "check job --token abc", `token "abc"`, "a whole number from 1"),
	wrong(usage, "check job --token -1", `token "-1"`, "a whole number from 1"),
	wrong(usage, "check", "NAME is missing", "leasehold check NAME --token N"),
	wrong(usage, "show a b", `"b" is one argument too many`, "leasehold show NAME"),
	wrong(1, "show absent", "absent", "leasehold list"),
	wrong(usage, "list -o yaml", `--output: "yaml"`, "table, json or jsonl"),
	wrong(usage, "serve --listen 8080", "--listen 8080", "HOST:PORT"),
	wrong(usage, "serve --addr :8080", "--addr", "write --listen HOST:PORT"),
	wrong(usage, "elect job", "--on-active is missing", "leasehold elect job --on-active CMD"),
	wrong(usage, "elect -- ./x.sh", "NAME is missing", "leasehold elect NAME -- CMD"),
	wrong(usage, "elect job --fail-back -- ./x.sh", "--fail-back has no value", "took the double dash"),
	wrong(usage, "elect job --listen 8080 -- true", "--listen 8080", "HOST:PORT"),
	wrong(usage, "standby --config dr.yaml --listen 8080 -- true", "--listen 8080", "HOST:PORT"),
	wrong(usage, "standby --config table.yaml --listen off -- true", "table.yaml", "region is missing", "region: us-east-2", "AWS_REGION"),
	wrong(usage, "standby status --config table.yaml", "table.yaml", "region is missing"),
	wrong(usage, "standby switchover --to west --config table.yaml", "table.yaml", "region is missing"),
	wrong(usage, "handoff job", "--to is missing", "leasehold candidates job"),
	wrong(usage, "pause job --for tomorrow", `"tomorrow" for "--for"`, "such as 20s"),
	wrong(usage, "id assign pool --range 5-1", `range "5-1"`, "like 1-254"),
	wrong(usage, "init postgress", `"postgress"`, "postgres, systemd"),
	wrong(usage, "init systemd --listen :7070", "--listen", "leasehold init systemd -- --listen"),
	wrong(0, "init systemd --exec /home/me/go/bin/leasehold", "/home/me/go/bin/leasehold", "sudo install", "--exec /usr/local/bin/leasehold"),
	wrong(usage, "config set ttl 5s", `"set" is no command of config`, "leasehold config show"),
	wrong(usage, "sweep --older-than 5", `--older-than "5"`, "such as 30d"),
	wrong(usage, "watch --every 0", "--every 0s", "at least 10ms"),

	// Shards.
	wrong(usage, "shard orders", `"orders" is no command of shard`, "leasehold shard --help"),
	wrong(usage, "shard run", "SPACE and CMD are missing", "--shards 0-63 -- CMD"),
	wrong(usage, "shard run -- ./worker", "SPACE is missing", "leasehold shard run SPACE -- ./worker"),
	wrong(usage, "shard run orders", "CMD is missing", "leasehold shard run orders -- CMD"),
	wrong(usage, "shard run orders ./worker", "double dash is missing", "leasehold shard run orders -- ./worker"),
	wrong(usage, "shard run orders --", "CMD is missing after the double dash"),
	wrong(missing, "shard run orders --shards 0-3 -- ./absent", "./absent", "not found"),
	wrong(usage, "shard run .orders --shards 0-3 -- true", `".orders"`, "does not begin with a dot"),
	wrong(usage, "shard run a/b --shards 0-3 -- true", "SPACE", `"a/b"`),
	wrong(usage, "shard run orders --shards 63-0 -- true", `--shards "63-0"`, "as in 0-63"),
	wrong(usage, "shard run orders --shards 0--3 -- true", `--shards "0--3"`, "as in 0-63"),
	wrong(usage, "shard run orders --shards 0- -- true", `--shards "0-"`, "as in 0-63"),
	wrong(usage, "shard run orders --shards 0-9999999 -- true", `--shards "0-9999999"`, "at most 1000000 names"),
	wrong(usage, "shard run orders --shards 0-99999999999999999999 -- true", "want a range that rises"),
	wrong(usage, "shard run orders --shards 0-3,2 -- true", "--shards", `"2" is there twice`),
	wrong(usage, "shard run orders --shards 0-3,, -- true", "--shards", `slice "": want 1 to 120 bytes`),
	wrong(usage, "shard run orders --shards 0-3 --hashed -- true", "--hashed and --shards exclude each other", "--slices N"),
	wrong(usage, "shard run orders --slices 64 -- true", "--slices 64: belongs to --hashed", "--shards 0-63"),
	wrong(usage, "shard run orders --hashed --slices -1 -- true", "--slices -1", "want 1 to"),
	wrong(usage, "shard run orders --shards-from absent.txt -- true", "--shards-from", "absent.txt"),
	wrong(usage, "shard run orders --shards 0-3 --capacity 0 -- true", "--capacity 0", "above 0"),
	wrong(usage, "shard run orders --shards 0-3 --drain 0 -- true", "--drain 0s", "above 0"),
	wrong(usage, "shard run orders --shards 0-3 --label large -- true", `--label "large"`, "KEY=VALUE"),
	wrong(usage, "shard run orders --shards 0-3 --on-exit stop -- true", `--on-exit "stop"`, "restart or leave"),
	wrong(usage, "shard run orders --shards 0-3 --as a/b -- true", `--as: "a/b"`, "without a slash"),
	wrong(usage, "shard run orders -- true", "there is no space orders yet", "--shards 0-63"),
	wrong(1, "shard status orders", "there is no space orders", "leasehold shard run SPACE --shards 0-63"),
	wrong(usage, "shard status", "SPACE is missing", "leasehold shard status SPACE"),
	wrong(usage, "shard status orders --limit 0", "--limit 0", "want 1 to"),
	wrong(usage, "shard move orders 17", "--to is missing", "leasehold shard status orders"),
	wrong(usage, "shard move orders 17 web2", `"web2" is one argument too many`),
	wrong(usage, "shard drain orders", "WORKER is missing", "leasehold shard drain SPACE WORKER"),
	wrong(usage, "shard lookup orders", "KEY is missing", "leasehold shard lookup SPACE KEY"),
	wrong(usage, "shard place orders", "nothing is to be changed", "--max"),
	wrong(usage, "shard place orders --pin eu=west", `--pin "eu=west"`, "PREFIX:zone=ZONE"),
	wrong(usage, "shard split orders 0x80 --wait 1s -n", "--no-wait and --wait exclude each other"),
}

// pairYAML is the configuration of an instance of standby.
const pairYAML = "leaseName: p\npodIdentifier: e\nwaitTimeInSeconds: 1\nfailureThreshold: 3\nstore: file:dr.db\n"

// tableYAML is one that names a table, and no Region.
const tableYAML = "leaseName: p\npodIdentifier: e\nwaitTimeInSeconds: 1\nfailureThreshold: 3\ndynamoDB:\n  tableName: leases\n"

// Each mistake is answered in one line with the field, the value that was given, and what to type instead.
func TestMistakes(t *testing.T) {
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "LEASEHOLD_") || strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "XDG_") || name == "SUDO_USER" {
			t.Setenv(name, "") // and back again when the test is over
		}
	}
	for name, text := range map[string]string{"text.db": strings.Repeat("no database\n", 100), "script.sh": "#!/bin/sh\n", "wrong.yaml": "stroe: file:x\n", "dr.yaml": pairYAML, "table.yaml": tableYAML} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	if len(mistakes) < 65 {
		t.Errorf("%d mistakes: want 65 at least", len(mistakes))
	}
	for _, m := range mistakes {
		for i, arg := range m.args {
			m.args[i] = strings.Replace(arg, "http://SERVER", stranger.URL, 1)
		}
		t.Run(strings.Join(m.args, " "), func(t *testing.T) {
			for _, line := range m.env {
				name, value, _ := strings.Cut(line, "=")
				t.Setenv(name, value)
			}
			code, said := call(t, m.args)
			if code != m.code {
				t.Errorf("exit code %d, want %d", code, m.code)
			}
			for _, want := range m.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in the answer", want)
				}
			}
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(said), "\n"), func(line string) bool {
				return strings.Contains(line, "waiting for the store") || m.code == 0 && strings.Contains(line, "no names have been held")
			})
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "leasehold: ") {
				t.Errorf("%d lines", len(lines))
			}
			if t.Failed() {
				t.Logf("the answer: %s", said)
			}
		})
	}
}

// call runs the program in this process, and returns its exit code and what it said on standard error.
func call(t *testing.T, args []string) (code int, said string) {
	t.Helper()
	files := make([]*os.File, 2)
	for i, name := range []string{"out", "err"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		files[i] = f
	}
	a := cli.New()
	a.Out, a.Err = files[0], files[1]
	code = a.Execute(root(a, args), args)
	text, err := os.ReadFile(files[1].Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}
