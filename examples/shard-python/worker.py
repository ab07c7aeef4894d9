#!/usr/bin/env python3
"""A worker of a sharded space, over HTTP, with nothing but Python.

    leasehold serve &
    python3 worker.py jobs 0,1,2,3

It opens a session of the lock server, joins the space, and runs work() in a thread for each slice
that is its own. SIGTERM drains all slices and hands them over. Start it on several machines.

work() has to return soon after own() is false. It sends the token, or the sequencer, with each
write, and what is written to compares it: a process may be stopped between own() and the write.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = os.environ.get("LEASEHOLD_SERVER", "http://127.0.0.1:7070")


def now():
    """Seconds of a clock that counts while the machine is suspended, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def call(method, path, body, secret=""):
    headers = {"Leasehold-Secret": secret, "Content-Type": "application/json"}
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=body.get("wait", 0) + 5) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Slice(threading.Thread):
    """The work for one slice under one token."""

    def __init__(self, worker, part):
        super().__init__(daemon=True)
        self.worker, self.name_, self.token, self.sequencer = worker, part["slice"], part["token"], part["sequencer"]
        self.goes = threading.Event()

    def own(self):
        """Whether the slice is this worker's now: asked before each write."""
        return not self.goes.is_set() and now() < self.worker.valid_until

    def run(self):
        self.worker.work(self)


class Worker:
    def __init__(self, space, name, shards, work, ttl="15s"):
        self.space, self.name, self.shards, self.work, self.ttl = space, name, shards, work, ttl
        self.leave = threading.Event()  # set it to hand over all, and to end
        self.valid_until = 0  # of the session, by now()

    def run(self):
        while not self.session():
            print("the session is over: joining again", file=sys.stderr)

    def session(self):
        """Is a worker until its session is over, or it has left: then it returns True."""
        sent = now()
        opened = call("POST", "/v1/sessions", {"holder": self.name, "ttl": self.ttl})
        self.id, self.secret = urllib.parse.quote(opened["session"], safe=""), opened["secret"]
        self.valid_until = sent + opened["valid_for"]
        over = threading.Event()
        beat = threading.Thread(target=self.renew, args=(opened["renew_every"], over), daemon=True)
        beat.start()
        try:
            path = "/v1/shards/%s/workers" % urllib.parse.quote(self.space, safe="")
            join = {"session": opened["session"], "worker": self.name}
            if self.shards:
                join["shards"] = self.shards
            call("POST", path, join, self.secret)
            return self.steps(path + "/" + self.id, opened["renew_every"])
        finally:
            over.set()
            beat.join()
            if now() < self.valid_until:
                call("DELETE", "/v1/sessions/" + self.id, {}, self.secret)  # else it expires

    def renew(self, every, over):
        while not over.wait(every):
            sent = now()
            try:
                renewed = call("PUT", "/v1/sessions/" + self.id, {}, self.secret)
                self.valid_until = sent + renewed["valid_for"]
            except urllib.error.HTTPError as e:
                if e.code == 409:  # it is over, and all that it owned
                    self.valid_until = 0
                    return
            except OSError:
                pass  # again at the next beat, while it is valid

    def steps(self, path, every):
        """Says what was stopped, and hears what it owns, again and again."""
        slices = {}  # by slice and token
        seen = ""
        leaving_since = 0
        while now() < self.valid_until:
            stopped = {s.name_: s.token for s in slices.values() if not s.is_alive()}
            body = {"stopped": stopped, "seen": seen, "wait": min(every, 1)}
            if self.leave.is_set():
                leaving_since = leaving_since or now()
                # After three beats the others have had time to ask for what they have room for.
                body.update(leave=True, free=now() - leaving_since > 3 * every)
            try:
                holding = call("PUT", path, body, self.secret)
            except urllib.error.HTTPError as e:
                if e.code in (403, 404, 409):  # the session is over, or no member any more
                    break
                time.sleep(0.2)
                continue
            except OSError:  # the same again: what was stopped stays stopped
                time.sleep(0.2)
                continue
            seen = holding["seen"]
            if holding.get("left"):
                return True
            owned = {(p["slice"], p["token"]): p for p in holding["slices"]}
            for key, s in list(slices.items()):
                if key not in owned:
                    s.goes.set()
                    s.join()
                    del slices[key]
            for key, p in owned.items():
                if key not in slices and not p.get("goes"):
                    slices[key] = Slice(self, p)
                    slices[key].start()
                elif key not in slices:  # it is to go before it has begun
                    slices[key] = Slice(self, p)
                    seen = ""
                elif p.get("goes"):
                    slices[key].goes.set()
                    slices[key].join()
                    seen = ""  # the next request says so at once
        for s in slices.values():
            s.goes.set()
            s.join()
        return self.leave.is_set()


def work(s):
    """Stands for work: a line when it begins and when it ends, in a file that all workers share."""
    with open(os.environ.get("SHARD_LOG", os.devnull), "a", buffering=1) as log:
        log.write("begin %s %d %s\n" % (s.name_, s.token, s.worker.name))
        while s.own():
            s.goes.wait(0.05)
        log.write("end %s %d %s\n" % (s.name_, s.token, s.worker.name))


def main():
    space, shards = sys.argv[1], [s for s in sys.argv[2].split(",") if s] if len(sys.argv) > 2 else []
    name = os.environ.get("WORKER", "%s:%d" % (os.uname().nodename, os.getpid()))
    w = Worker(space, name, shards, work, os.environ.get("TTL", "15s"))
    signal.signal(signal.SIGTERM, lambda *_: w.leave.set())
    signal.signal(signal.SIGINT, lambda *_: w.leave.set())
    w.run()


if __name__ == "__main__":
    main()
