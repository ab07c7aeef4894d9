# Pairs of an acquisition and a release by rdlm-py, RDLM's client for Python. Arguments: the server's port, the number of the first
# client, how many clients there are, how many pairs each does. It says "ready", and begins when it is told to; then it says how many
# microseconds each pair took, and first how many clients had their connection reset and did no more.
import sys
import threading
import time

import requests
from rdlmpy import RDLMClient

port, first, clients, pairs = map(int, sys.argv[1:])
begin = threading.Event()
took = []
failed = []
reset = []


def work(i):
    client = RDLMClient(server="127.0.0.1", port=port, default_title="t")
    begin.wait()
    try:
        for _ in range(pairs):
            at = time.monotonic()
            url = client.lock_acquire("name%d" % i, lifetime=60, wait=600)
            if not client.lock_release(url):
                raise AssertionError("not released: " + url)
            took.append(int(1e6 * (time.monotonic() - at)))
    except Exception as e:
        (reset if isinstance(e.__context__, requests.ConnectionError) else failed).append(repr(e))


threads = [threading.Thread(target=work, args=(first + i,)) for i in range(clients)]
for t in threads:
    t.start()
print("ready", flush=True)
sys.stdin.readline()
begin.set()
for t in threads:
    t.join()
if failed:
    sys.exit("%d of %d clients failed: %s" % (len(failed), clients, failed[0]))
print("reset:%d" % len(reset), *took)
