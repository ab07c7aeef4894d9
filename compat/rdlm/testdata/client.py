# What a program does that uses rdlm-py, RDLM's client for Python. Arguments: the server's port, an admin's name and password.
import datetime
import sys
import threading

from rdlmpy import RDLMClient
from rdlmpy.exceptions import RDLMLockDeletedException, RDLMLockWaitExceededException, RDLMClientException

port, user, password = int(sys.argv[1]), sys.argv[2], sys.argv[3]
client = RDLMClient(server="127.0.0.1", port=port, default_wait=0)


def until(what, ready):
    for _ in range(10000):
        if ready():
            return
    raise AssertionError(what)


url = client.lock_acquire("job", lifetime=60, title="python")
lock = client.lock_get(url)
assert lock.active and lock.title == "python" and lock.lifetime == 60 and lock.wait == 0, vars(lock)
assert url.endswith("/locks/job/" + lock.uid)
length = lock.active_expires - lock.active_since
assert datetime.timedelta(seconds=58) <= length <= datetime.timedelta(seconds=61), length

try:
    client.lock_acquire("job")
    raise AssertionError("it was locked twice")
except RDLMLockWaitExceededException:
    pass

try:
    client.lock_acquire("job", lifetime="much")
    raise AssertionError("a lifetime of much")
except RDLMClientException:
    pass

got = []


def wait():
    try:
        got.append(client.lock_acquire("job", wait=60, lifetime=60))
    except RDLMLockDeletedException:
        got.append("deleted")


thread = threading.Thread(target=wait)
thread.start()
until("one waits", lambda: len(client.resource_get_all_locks("job", user, password)) == 2)
active, waiting = client.resource_get_all_locks("job", user, password)
assert active.active and active.uid != lock.uid and not waiting.active
assert waiting.wait_expires > waiting.wait_since
assert not client.lock_get(waiting.url).active
assert client.lock_release(url) and not client.lock_release(url)
assert client.lock_get(url) is None
thread.join()
assert got[0] != waiting.url and client.lock_get(waiting.url).active, (got, waiting.url)

thread = threading.Thread(target=wait)
thread.start()
until("one waits", lambda: len(client.resource_get_all_locks("job", user, password)) == 2)
assert not client.lock_release(client.resource_get_all_locks("job", user, password)[1].url)  # what is shown releases nothing
assert client.resource_delete("job", user, password)
thread.join()
assert got[1] == "deleted", got

client.lock_acquire("other")
client.lock_acquire("job")
assert client.resource_get_all(user, password) == ["job", "other"]
assert client.resource_delete("job", user, password) and not client.resource_delete("job", user, password)
assert client.resource_delete_all(user, password)
assert client.resource_get_all(user, password) == []
print("ok")
