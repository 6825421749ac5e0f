"""Two servers on one PostgreSQL, behind HAProxy: what one stores the other knows, counts add up exactly,
and windows close once, also while the database stops and starts and servers are killed.

usage: run.py KLDIVD CLUSTER     CLUSTER: folder of cluster.sh, started"""
import http.client
import http.server
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY, CLUSTER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WRITERS = 32
HAPROXY = """global
    log stderr local0 emerg
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    retries 3
    retry-on conn-failure empty-response
    option redispatch 1
frontend all
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
    balance roundrobin
    server a 127.0.0.1:{a} check inter 200ms fall 1 rise 1
    server b 127.0.0.1:{b} check inter 200ms fall 1 rise 1
"""


def cluster(verb):
    subprocess.run([os.path.join(HERE, "cluster.sh"), verb, CLUSTER], check=True)


def sql(text, database="postgres"):
    return subprocess.run(["psql", "-qtAX", "-h", CLUSTER, "-U", "kldiv", "-d", database, "-c", text],
                          check=True, capture_output=True, text=True).stdout.strip()


def store_of(database, user="kldiv"):
    return "postgresql://%s@/%s?host=%s" % (user, database, CLUSTER)


class Server:
    """A server on the database `kldiv` of the cluster, on a port that it keeps when it starts again."""
    started = []

    def __init__(self, folder, name, *flags, database="kldiv", user="kldiv"):
        self.log = os.path.join(folder, name + ".log")
        self.port_file = os.path.join(folder, name + ".port")
        self.flags = flags
        self.store = store_of(database, user)
        self.port = 0
        self.start()

    def start(self):
        if os.path.exists(self.port_file):
            os.unlink(self.port_file)
        self.process = subprocess.Popen(
            [BINARY, "--listen", "127.0.0.1:%d" % self.port, "--port-file", self.port_file,
             "--log-level", "warning", "--drain-delay", "0",
             "--store", self.store, *self.flags],
            stderr=open(self.log, "a"))
        self.started.append(self.process)
        wait_until(lambda: os.path.exists(self.port_file) and open(self.port_file).read().strip(),
                   "the server starts")
        self.port = int(open(self.port_file).read())

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait()

    def ask(self, method, path, body=None, headers={}):
        return ask(self.port, method, path, body, headers)


def ask(port, method, path, body=None, headers={}):
    """The status and the body, of JSON if it is that; 0 if the connection ended."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        is_json = "json" in (response.getheader("Content-Type") or "")
        return response.status, json.loads(text) if is_json else text
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        connection.close()


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise AssertionError("in %d s it is not so that " % seconds + what)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


LONG = {"seconds": 10 ** 9}  # a window that ends during no test
BASKET = {"bins": {"edges": [0, 1, 2, 3]}, "reference": {"counts": [300, 300, 300]}}
BINS = 6  # with those below, above and missing


class Writers:
    """Threads that post to monitors until they are stopped. A post that is not answered by 200 comes again
    with its key, so that it counts once. `also`: statuses by which one may be refused beside 502 to 504."""

    def __init__(self, port, monitors, also):
        self.port, self.monitors, self.also = port, monitors, also
        self.stopping = threading.Event()
        self.sent = {name: [0, 0, 0] for name in monitors}
        self.refused = self.replayed = self.posts = 0
        self.lock = threading.Lock()
        self.wrong = []
        self.threads = [threading.Thread(target=self.write, args=(i,)) for i in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, number):
        chance = random.Random(number)
        for i in range(10 ** 9):
            if self.stopping.is_set():
                return
            name = chance.choice(self.monitors)
            counts = [chance.randrange(5), chance.randrange(5), 1 + chance.randrange(5)]
            body = {"counts": counts}
            if name == "late":  # in windows that are open beside one another, or closed by now
                body["timestamp"] = time.time() - 4 * chance.random()
            self.post(name, body, "%d-%d-%d" % (id(self), number, i))

    def post(self, name, observations, key):
        counts = observations["counts"]
        while True:
            status, body = ask(self.port, "POST", "/monitors/load/%s/observations" % name, observations,
                               {"Idempotency-Key": key})
            if status == 200:
                break
            with self.lock:
                self.refused += 1
                if status not in (0, 502, 503, 504, *self.also):
                    self.wrong.append((status, body))
            time.sleep(0.05)
        with self.lock:
            self.posts += 1
            for i in range(3):
                self.sent[name][i] += counts[i]

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        expect(not self.wrong, "unexpected answers: %r" % self.wrong[:3])


def all_pages(server, path, member):
    rows, cursor = [], ""
    while cursor is not None:
        status, page = server.ask("GET", path + "?limit=500" + (cursor and "&cursor=" + cursor))
        expect(status == 200, "%s: %d %r" % (path, status, page))
        rows += page[member]
        cursor = page["next"]
    return rows


def stored_counts(name, group="load"):
    """Counts of all windows of a monitor: of each 7 bits of a byte, the lowest first, until one has no high bit."""
    of = "JOIN kldiv_monitors m ON m.id = c.monitor WHERE m.group_name = '%s' AND m.name = '%s'" % (group, name)
    totals = [0] * BINS
    for line in sql("SELECT encode(counts, 'hex') FROM kldiv_windows c %s" % of, "kldiv").splitlines():
        index = shift = 0
        for byte in bytes.fromhex(line):
            totals[index] += (byte & 127) << shift
            index, shift = (index, shift + 7) if byte & 128 else (index + 1, 0)
    return [n for n in totals if n]


def check_counts(server, writers):
    """Each value that was acknowledged is in one window, and nothing else is."""
    for name, sent in writers.sent.items():
        windows = all_pages(server, "/monitors/load/%s/windows" % name, "windows")
        starts = [window["window"]["start"] for window in windows]
        stored = stored_counts(name)
        expect(stored == sent, "%s: %s is stored, %s was sent" % (name, stored, sent))
        metric = 'kldiv_monitor_observations_total{group="load",monitor="%s"} %d' % (name, sum(sent))
        expect(metric in server.ask("GET", "/metrics")[1].decode(), metric)
        if name == "long":
            status, body = server.ask("GET", "/monitors/load/long/windows/%d" % windows[0]["window"]["id"])
            expect(sum(row["n"] for row in windows[1:]) + body["n"] == sum(sent),
                   "n of the open window: %r" % body)
        expect(sum(window["n"] for window in windows) == sum(sent), "n of %s" % name)
        if not name.startswith("batch"):
            expect(len(set(starts)) == len(starts), "%s has two windows of one start" % name)
    return sum(map(sum, writers.sent.values()))


def check_events(server, writers):
    """The states of windows, in order, are what events tell: none is missing, none is told twice. A window that comes
    late has the newest judged again, which may have another event. Silences have events without a window."""
    for name in writers.sent:
        events = all_pages(server, "/monitors/load/%s/events" % name, "events")[::-1]
        changes = [event for event in events if event["window"] is not None]
        for before, after in zip(changes, changes[1:]):
            expect(before["to"] == after["from"], "events of %s: %r then %r" % (name, before, after))
        told = [(event["window"], event["from"], event["to"]) for event in changes]
        expect(len(set(told)) == len(told), "%s: an event is told twice: %r" % (name, events))
        silences = [event["to"] == "stale" for event in events if event["window"] is None]
        expect(silences == [i % 2 == 0 for i in range(len(silences))], "%s: a silence begins and ends by turns: %r" % (name, events))


def set_up(port, seconds):
    names = {"batch-1": "batch", "batch-2": "batch", "time-1": {"seconds": 1, "grace": 0},
             "time-2": {"seconds": 1, "grace": 0}, "count-1": {"count": 200}, "long": LONG,
             "late": {"seconds": 1, "grace": 2}}
    for name, window in names.items():
        status, body = ask(port, "PUT", "/monitors/load/" + name, dict(BASKET, window=window))
        expect(status in (200, 201), "PUT %s: %d %r" % (name, status, body))
    return list(names)


def try_deletions(a, b):
    """A window goes for both servers, also one that is open, and that the other counts in."""
    path = "/monitors/deletions/m"
    long = dict(BASKET, window=LONG)
    expect(a.ask("PUT", path, long)[0] == 201, "PUT")
    expect(a.ask("POST", path + "/observations", {"counts": [1, 5, 9]})[0] == 200, "the first opens the window")
    expect(b.ask("POST", path + "/observations", {"counts": [1, 5, 9]})[0] == 200, "the other server counts, too")
    expect(a.ask("DELETE", path + "/windows/1")[0] == 204, "of a window that the other counts in")
    for server in a, b:
        expect(server.ask("GET", path + "/windows/1")[0] == 404, "it is gone")
        expect(server.ask("POST", path + "/observations", {"counts": [1, 5, 9]})[1]["n"] in (15, 30), "a new one begins")
    expect(a.ask("GET", path + "/windows/current")[1]["n"] == 30, "and has what came after")
    for i in range(20):
        one, other = (a, b) if i % 2 else (b, a)
        name = "/monitors/deletions/b%d" % i
        expect(one.ask("PUT", name, BASKET)[0] == 201, "PUT")
        for counts in [90, 90, 90], [200, 50, 10]:
            expect(other.ask("POST", name + "/observations", {"counts": counts})[0] == 200, "POST")
        states = [server.ask("GET", name)[1]["state"] for server in (a, b)]
        expect(states == ["critical"] * 2, "before: %r" % states)
        expect(one.ask("DELETE", name + "/windows/2")[0] == 204, "DELETE")
        states = [server.ask("GET", name)[1]["state"] for server in (a, b)]
        expect(states == ["ok"] * 2, "after: %r" % states)


def try_sharing(a, b):
    """What one server has answered 2xx to, the other knows at once."""
    for i in range(50):
        one, other = (a, b) if i % 2 else (b, a)
        path = "/monitors/shared/m%d" % i
        expect(one.ask("PUT", path, BASKET)[0] == 201, "PUT")
        status, body = other.ask("GET", path)
        expect(status == 200, "GET by the other: %d %r" % (status, body))
        status, body = other.ask("POST", path + "/observations", {"counts": [1, 50, 200]})
        expect(status == 200 and body["window"]["id"] == 1, "POST by the other: %d %r" % (status, body))
        status, body = one.ask("POST", path + "/observations", {"counts": [1, 50, 200]})
        expect(body["window"]["id"] == 2, "the second window: %r" % body)
        status, body = other.ask("GET", "/monitors?group=shared&q=m%d" % i)
        row = [m for m in body["monitors"] if m["name"] == "m%d" % i][0]
        expect(row["window"]["id"] == 2 and len(row["recent"]) == 2, "the list: %r" % row)
        expect(one.ask("PUT", path, dict(BASKET, pseudocount=1))[0] == 200, "PUT again")
        expect(other.ask("GET", path)[1]["pseudocount"] == 1, "the new setting")
        expect(other.ask("POST", path + "/evaluate", {"counts": [1, 2, 3]})[1]["pseudocount"] == 1, "evaluate")
        mutes = [path + "/mute", "/groups/shared/mute"][i % 2]
        expect(one.ask("POST", mutes, {"until": 4e9, "reason": "m%d" % i})[0] == 200, "mute")
        expect(other.ask("GET", path)[1]["muted"]["reason"] == "m%d" % i, "muted at the other, too")
        expect(other.ask("DELETE", mutes)[0] == 204, "its end")
        expect(one.ask("GET", path)[1]["muted"] is None, "the end of the mute is known")
        notes = [path + "/notes", "/groups/shared/notes"][i % 2]
        status, note = one.ask("POST", notes, {"text": "n%d" % i})
        expect(status == 201 and other.ask("GET", path + "/notes")[1]["notes"][0] == note, "a note: %r" % note)
        expect(other.ask("DELETE", "%s/%d" % (notes, note["id"]))[0] == 204, "its end")
        counts = [1] * (4 + i % 3)
        body = {"bins": {"edges": list(range(len(counts) + 1))}, "reference": {"counts": counts}}
        expect(one.ask("PUT", path, body)[0] == 200, "PUT of other bins")
        expect(other.ask("POST", path + "/observations", {"counts": counts})[0] == 200, "POST by the new bins")
        if i % 3 == 0:
            expect(one.ask("DELETE", path)[0] == 204, "DELETE")
            expect(other.ask("POST", path + "/observations", {"counts": [1]})[0] == 404, "POST of what never fits")
            expect(other.ask("GET", path)[0] == 404, "GET of what is gone")
            expect(other.ask("POST", path + "/observations", {"counts": [1, 2, 3]})[0] == 404, "POST to it")
            expect(other.ask("PUT", path, BASKET)[0] == 201, "PUT of a new one")
            expect(one.ask("POST", path + "/observations", {"counts": [1, 2, 3]})[1]["window"]["id"] == 1,
                   "its first window")
    print("50 monitors: what one server stores, the other knows")


def try_open_window(a, b):
    """What two servers add to an open window is one window: its counts, scores and texts that are no labels."""
    config = {"bins": {"labels": ["x", "y"]}, "reference": {"counts": [100, 100]}, "window": LONG}
    path = "/monitors/shared/open"
    expect(a.ask("PUT", path, config)[0] == 201, "PUT")
    for i in range(60):
        one, other = (a, b) if i % 2 else (b, a)
        status, body = one.ask("POST", path + "/observations", {"values": ["x", "x", "y", "new", "z%d" % (i % 3)]})
        expect(status == 200 and body["window"]["id"] == 1, "POST: %d %r" % (status, body))
        status, body = other.ask("GET", path + "/windows/1")
        expect(body["n"] == 5 * (i + 1), "n by the other, at once: %r" % body)
        unseen = {item["label"]: item["count"] for item in body["unseen"]}
        expect(unseen == {"new": i + 1, **{"z%d" % k: (i + 3 - k) // 3 for k in range(min(3, i + 1))}},
               "texts by the other: %r" % unseen)
    wait_until(lambda: all(b'kldiv_monitor_observations_total{group="shared",monitor="open"} 300'
                           in server.ask("GET", "/metrics")[1] for server in (a, b)), "both know of all", 10)
    expect(a.ask("PUT", path, dict(config, reference={"counts": [1, 2]}))[0] == 200, "PUT of another reference")
    status, window = b.ask("GET", path + "/windows/1")
    expect(window["window"]["closed"] and window["n"] == 300
           and abs(window["bins"][0]["current"] - 0.4) < 0.01, "the closed window: %r" % window)
    print("two servers add to one open window")


def try_busy_server(a, b):
    """A server that writes all the time learns what the other counts in windows that it knows."""
    config = dict(BASKET, window={"seconds": 86400})
    for name in "watched", "busy":
        expect(a.ask("PUT", "/monitors/shared/" + name, config)[0] == 201, "PUT")
        for server in a, b:
            expect(server.ask("POST", "/monitors/shared/%s/observations" % name, {"counts": [1, 1, 1]})[0] == 200, "POST")
    for _ in range(20):
        expect(a.ask("POST", "/monitors/shared/watched/observations", {"counts": [1, 1, 1]})[0] == 200, "POST")

    def knows():
        expect(b.ask("POST", "/monitors/shared/busy/observations", {"counts": [1, 1, 1]})[0] == 200, "POST")
        return b'kldiv_monitor_observations_total{group="shared",monitor="watched"} 66' in b.ask("GET", "/metrics")[1]
    wait_until(knows, "the busy one knows of all", 20)
    print("a busy server learns what the other counts")


def try_load(a, b, port, seconds, what, trouble=None, also=()):
    sql("DROP DATABASE IF EXISTS scratch")
    for server in (a, b):
        wait_until(lambda: server.ask("GET", "/monitors")[0] == 200, "a server answers")
    a.ask("DELETE", "/monitors/load")
    writers = Writers(port, set_up(port, seconds), also)
    start = time.monotonic()
    if trouble:
        trouble()
    time.sleep(max(0, seconds - (time.monotonic() - start)))
    writers.stop()
    took = time.monotonic() - start
    time.sleep(2.5)  # the last windows of a second close
    n = check_counts(a, writers)
    check_counts(b, writers)
    check_events(b, writers)
    still_open = sql("SELECT count(*) FROM kldiv_windows w JOIN kldiv_monitors m ON m.id = w.monitor"
                     " WHERE closed = 0 AND m.name LIKE 'time%'", "kldiv")
    expect(still_open == "0", "%s windows of a second are open" % still_open)
    print("%s: %d posts of %d writers, %.0f a second, %d not answered at first; %d values, all there once"
          % (what, writers.posts, WRITERS, writers.posts / took, writers.refused, n))


def try_keys(a, b):
    """Requests that come to both servers at once count once, and neither server waits for one that waits for it."""
    expect(a.ask("PUT", "/monitors/twice/long", dict(BASKET, window=LONG))[0] == 201, "PUT")
    expect(a.ask("POST", "/monitors/twice/long/observations", {"counts": [1, 1, 1]})[0] == 200, "POST")
    before = [len(open(server.log).read()) for server in (a, b)]
    keys, rounds, answers = 48, 3, []

    def post(server, key):
        answers.append(server.ask("POST", "/monitors/twice/long/observations", {"counts": [1, 1, 1]},
                                  {"Idempotency-Key": "twice-%d" % key})[0])

    for i in range(rounds):
        threads = [threading.Thread(target=post, args=(server, i * keys + (key if server is a else keys - 1 - key)))
                   for key in range(keys) for server in (a, b)]
        holding = threading.Thread(target=hold_lock, args=(a, b))
        holding.start()
        time.sleep(1.5)  # it has the lock, and the requests queue
        for thread in threads:
            thread.start()
        for thread in (holding, *threads):
            thread.join()
    expect(answers == [200] * 2 * keys * rounds, "answers: %r" % sorted(set(answers)))
    expect(stored_counts("long", "twice") == [1 + keys * rounds] * 3, "%r" % stored_counts("long", "twice"))
    for server, size in zip((a, b), before):
        expect("deadlock" not in open(server.log).read()[size:], open(server.log).read()[size:])
    print("%d requests that came to both servers at once: each counts once" % (keys * rounds))


def stop_database(a, b):
    time.sleep(1)
    cluster("stop")
    wait_until(lambda: b"\"down\"" in json.dumps(a.ask("GET", "/readyz")[1]).encode(), "the store is down")
    expect(a.ask("GET", "/readyz")[0] == 200, "/readyz is 200")
    wait_until(lambda: b.ask("GET", "/readyz")[0] == 503, "/readyz is 503 with --ready-needs-store")
    status, body = a.ask("GET", "/monitors")
    expect(status == 503 and body["code"] == "store_unavailable", "%d %r" % (status, body))
    status, body = a.ask("POST", "/kl_div", {"input": [-0.5, -1], "target": [0.5, 0.5], "reduction": "sum"})
    expect(status == 200, "/kl_div without the database: %d %r" % (status, body))
    expect(b"kldiv_store_up 0" in a.ask("GET", "/metrics")[1], "kldiv_store_up")
    time.sleep(1)
    cluster("start")
    wait_until(lambda: b.ask("GET", "/readyz")[0] == 200, "it recovers")


def crash_database(a, b):
    for _ in range(2):
        time.sleep(1)
        cluster("kill")
        cluster("start")


def kill_servers(a, b):
    for i in range(6):
        time.sleep(0.7)
        server = (a, b)[i % 2]
        server.end(signal.SIGKILL)
        server.start()


def hold_lock(a, b):
    """A session that hangs in a transaction makes others wait, not fail."""
    time.sleep(1)
    sql("BEGIN; SELECT pg_advisory_xact_lock(hashtext('kldiv'), hashtext('public')); SELECT pg_sleep(2);"
        " COMMIT", "kldiv")


def freeze_server(a, b):
    """A server that hangs in its transaction holds the other for 10 s, or 15 s and what it takes to connect."""
    for _ in range(8):
        time.sleep(0.5 + random.random())
        start = time.monotonic()
        a.process.send_signal(signal.SIGSTOP)
        try:
            status, body = b.ask("GET", "/monitors/load")
            if status == 503:
                status, body = b.ask("GET", "/monitors/load")
        finally:
            a.process.send_signal(signal.SIGCONT)
        expect(status == 200 and time.monotonic() - start < 25, "%d after %.0f s" % (status, time.monotonic() - start))
        if time.monotonic() - start > 5:
            return


def try_uncertain_commit(a):
    """Commits that are done, but not acknowledged because no standby is there, are not done again."""
    expect(a.ask("PUT", "/monitors/uncertain/m", dict(BASKET, window=LONG))[0] == 201, "PUT")
    sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    sql("SELECT pg_reload_conf()")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        a.ask("POST", "/monitors/uncertain/m/observations", {"counts": [1, 1, 1]}))) for _ in range(30)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.3)
        sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    sql("ALTER SYSTEM RESET synchronous_standby_names")
    sql("SELECT pg_reload_conf()")
    n = wait_until(lambda: a.ask("GET", "/monitors/uncertain/m/windows"), "it answers")[1]["windows"][0]["n"]
    expect(n <= 90 and {status for status, _ in answers} <= {200, 503}, "%d of 90 are stored" % n)
    expect(any("may or may not be stored" in str(body) for _, body in answers), "%r" % answers[:2])
    print("commits whose end nobody knows are not repeated")


def try_unreadable(a, b):
    """A monitor that cannot be read is left out by both servers, which go on with the others."""
    for name in ("x", "y"):
        expect(a.ask("PUT", "/monitors/damaged/" + name, BASKET)[0] == 201, "PUT")
        expect(b.ask("GET", "/monitors/damaged/" + name)[0] == 200, "GET by the other")
    which = "group_name = 'damaged' AND name = 'x'"
    sql("UPDATE kldiv_revisions SET definition = '{' WHERE monitor = (SELECT id FROM kldiv_monitors WHERE %s);"
        "UPDATE kldiv_monitors SET version = version + 1, changed = changed + 1 WHERE %s" % (which, which), "kldiv")
    for server in (a, b):
        wait_until(lambda: server.ask("GET", "/monitors/damaged/x")[0] == 404, "the monitor is left out")
        expect(server.ask("POST", "/monitors/damaged/y/observations", {"counts": [1, 2, 3]})[0] == 200, "POST")
        wait_until(lambda: "'x' of the group 'damaged' cannot be read" in open(server.log).read(), "the log names it")
    expect(b.ask("PUT", "/monitors/damaged/x", BASKET)[0] == 201, "PUT of what was left out")
    status, body = a.ask("POST", "/monitors/damaged/x/observations", {"counts": [1, 2, 3]})
    expect(status == 200 and body["window"]["id"] == 1, "POST by the other: %d %r" % (status, body))
    print("a monitor that cannot be read is left out, and put anew")


def try_older_copy(a, b):
    """Servers that find a copy of the database without the last transactions, as after a failover, forget them."""
    servers = {"long": LONG, "batch": "batch", "gone": "batch"}
    for name, window in servers.items():
        expect(a.ask("PUT", "/monitors/copy/" + name, dict(BASKET, window=window))[0] == 201, "PUT")

    def post(server):
        for name in ("long", "batch"):
            status, body = server.ask("POST", "/monitors/copy/%s/observations" % name, {"counts": [1, 1, 1]})
            expect(status == 200, "POST: %d %r" % (status, body))
        return body

    post(b)
    cluster("stop")
    subprocess.run(["cp", "-a", CLUSTER + "/data", CLUSTER + "/copy"], check=True)
    cluster("start")
    for server in (a, b):
        wait_until(lambda: server.ask("GET", "/monitors")[0] == 200, "it recovers")
    for server in (a, b, a):
        post(server)
    expect(b.ask("PUT", "/monitors/copy/batch", dict(BASKET, pseudocount=1))[0] == 200, "PUT again")
    expect(a.ask("DELETE", "/monitors/copy/gone")[0] == 204, "DELETE")
    cluster("stop")
    subprocess.run(["rm", "-rf", CLUSTER + "/data"], check=True)
    os.rename(CLUSTER + "/copy", CLUSTER + "/data")
    cluster("start")
    wait_until(lambda: b.ask("GET", "/monitors")[0] == 200, "it recovers")
    expect(post(b)["window"]["id"] == 2, "windows go on from the copy")
    for server in (a, b):
        wait_until(lambda: server.ask("GET", "/monitors")[0] == 200, "it recovers")
        expect(server.ask("GET", "/monitors/copy/gone")[0] == 200, "the monitor is there again")
        expect(server.ask("GET", "/monitors/copy/batch")[1]["pseudocount"] == 0.5, "the former setting")
        expect(server.ask("GET", "/monitors/copy/long/windows/1")[1]["n"] == 6, "counts of the copy")
    print("servers follow a copy of the database that is older")


def try_start_without(folder):
    cluster("stop")
    server = Server(folder, "early")
    status, body = server.ask("GET", "/monitors")
    expect(status == 503 and body["code"] == "store_unavailable", "%d %r" % (status, body))
    status, body = server.ask("PUT", "/monitors/early/one", BASKET)
    expect(status == 503, "%d %r" % (status, body))
    expect(server.ask("GET", "/readyz")[1]["store"] == "down", "/readyz")
    cluster("start")
    wait_until(lambda: server.ask("GET", "/monitors")[0] == 200, "it finds the database")
    expect(server.ask("PUT", "/monitors/early/one", BASKET)[0] == 201, "PUT then")
    expect(server.end() == 0, "it ends well")
    print("a server that starts before its database answers 503, then finds it")


def migrate(location):
    """Exit status and output of kldivd --migrate."""
    process = subprocess.run([BINARY, "--migrate", "--store", location], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=90)
    return process.returncode, process.stdout


def refused(location, *words):
    process = subprocess.run([BINARY, "--listen", "127.0.0.1:0", "--store", location], capture_output=True,
                             text=True, timeout=30)
    lines = process.stderr.strip().split("\n")
    expect(process.returncode == 1 and len(lines) == 1 and lines[0].startswith("kldivd: --store postgresql://")
           and all(word in lines[0] for word in words) and not re.search("se.?cret", lines[0]), process.stderr)


def try_refusals():
    refused("postgresql://kldiv@/nowhere?host=" + CLUSTER, "nowhere", "does not exist")
    refused("postgresql://nobody:secret@/kldiv?host=" + CLUSTER, "nobody:***@", "does not exist")
    refused("postgresql://kldiv@/kldiv?hst=" + CLUSTER, "hst")
    for location in ("nobody:se?cret@/kldiv?host=" + CLUSTER, "nobody:my%secret@/kldiv", "nobody:a/secret@h/kldiv",
                     "nobody:secret@h:y/kldiv", "nobody:secret@[::1/kldiv", "h/kldiv?user=a&password=secret&x=1"):
        refused("postgresql://" + location, "***")
    sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    refused("postgresql://kldiv@/latin?host=" + CLUSTER, "encoding")
    sql("CREATE DATABASE newer")
    sql("CREATE TABLE kldiv_meta (name TEXT PRIMARY KEY, value BIGINT); INSERT INTO kldiv_meta VALUES ('schema', 999)", "newer")
    refused("postgresql://kldiv@/newer?host=" + CLUSTER, "newer version")
    sql("CREATE DATABASE foreign_one")
    sql("CREATE TABLE kldiv_events (a INTEGER)", "foreign_one")
    refused("postgresql://kldiv@/foreign_one?host=" + CLUSTER, "events", "already exists")
    expect(sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "foreign_one") == "1", "tables made")
    print("databases that are not there, not ours or newer are refused in a line")


TABLES = ("meta", "monitors", "revisions", "windows", "counts", "events", "keys")
THIRTEENTH = ("next_close", "warning", "critical", "significance", "stale_after", "last_id", "last_start", "last_end", "last_restated", "last_n", "last_kl",
              "last_js", "last_psi", "last_unseen_ratio", "last_missing_ratio", "last_noise_floor", "last_top", "last_top_share", "last_top_names", "n_recent", "recent", "began", "last_volume_ratio")  # columns of monitors that schemas 13 and 14 added
INDICES = ("windows_by_start", "windows_open", "keys_by_time")


def tables(database):
    return set(sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database).split())


def try_names(folder):
    """Tables of generic names are left to whoever has them; those of a former version are taken over."""
    sql("CREATE DATABASE shared")
    for name in TABLES:
        sql("CREATE TABLE %s (a INTEGER, value INTEGER)" % name, "shared")
    server = Server(folder, "names", database="shared")
    expect(server.ask("PUT", "/monitors/g/m?window=1000", BASKET)[0] == 201, "PUT beside tables of others")
    expect(server.ask("POST", "/monitors/g/m/observations", {"counts": [1, 2, 3]})[0] == 200, "POST")
    server.end()
    expect(all(name in TABLES or name.startswith("kldiv_") for name in tables("shared")), tables("shared"))
    sql("CREATE TABLE kldiv_counts (monitor BIGINT NOT NULL, window_id BIGINT NOT NULL, bin BIGINT NOT NULL, count BIGINT NOT NULL, "
        "PRIMARY KEY (monitor, window_id, bin)); INSERT INTO kldiv_counts SELECT monitor, id, bin, get_byte(counts, bin) "
        "FROM kldiv_windows, generate_series(0, length(counts) - 1) AS bin; ALTER TABLE kldiv_windows DROP COLUMN counts", "shared")
    for name in TABLES:
        sql("DROP TABLE %s; ALTER TABLE kldiv_%s RENAME TO %s" % (name, name, name), "shared")
    for name in INDICES:
        sql("ALTER INDEX kldiv_%s RENAME TO %s" % (name, name), "shared")
    sql("DROP TABLE kldiv_mutes, kldiv_notes, kldiv_outbox, kldiv_columns, kldiv_receivers; DELETE FROM meta WHERE name IN ('mute', 'note', 'server', 'notify_owner', 'notify_until', 'columns', 'written'); UPDATE meta SET value = 3 WHERE name = 'schema'; "
        "DROP INDEX kldiv_events_by_time; DROP TABLE kldiv_unseen; "
        "UPDATE monitors SET settings = replace(replace(settings, ',\"pool\":16', ''), ',\"stale_after\":null', ''); "
        "ALTER TABLE monitors DROP COLUMN since, DROP COLUMN pool_from, DROP COLUMN sentence, DROP COLUMN sentence_of, DROP COLUMN stale_told, DROP COLUMN missed, DROP COLUMN told, DROP COLUMN rose_at, DROP COLUMN rose_window; "
        "ALTER TABLE monitors RENAME COLUMN severity_since TO since; ALTER TABLE monitors " + ", ".join("DROP COLUMN " + name for name in THIRTEENTH) + "; "
        "ALTER TABLE events DROP COLUMN began; INSERT INTO meta VALUES ('change', 0), ('deletion', 0); "
        "ALTER TABLE windows DROP COLUMN pooled_windows, DROP COLUMN pooled_n, DROP COLUMN pooled_kl, "
        "DROP COLUMN pooled_p_value, DROP COLUMN pooled_noise_floor, DROP COLUMN pooled_bins, "
        "DROP COLUMN pooled_ratio, DROP COLUMN volume, DROP COLUMN moments, DROP COLUMN reference_spread", "shared")
    sql("CREATE TABLE kldiv_sums (a INTEGER)", "shared")
    status, output = migrate(server.store)
    expect(status == 1 and "already exists" in output, output)
    expect(sql("SELECT value FROM meta WHERE name = 'schema'; DROP TABLE kldiv_sums", "shared") == "3",
           "a migration that fails changes nothing")
    status, output = migrate(server.store)
    expect(status == 0 and "schema 3 \u2192 4: sums" in output and "schema 4 \u2192 5: " in output, output)
    server.start()
    status, body = server.ask("POST", "/monitors/g/m/observations", {"counts": [1, 2, 3]})
    expect(status == 200 and body["n"] == 12, "the store of a former version: %r %r" % (status, body))
    server.end()
    expect(all(name.startswith("kldiv_") for name in tables("shared")), tables("shared"))
    expect(sql("SELECT count(*) FROM pg_indexes WHERE indexname IN ('%s')" % "', '".join(INDICES), "shared") == "0",
           "indices have their names")
    expect(sql("SELECT value > 3 FROM meta WHERE name = 'schema'", "shared") == "t", "what an older version reads")
    print("tables of former versions are renamed, those of others are left alone")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps the messages that are posted: (id, ids of the changes, states after them)."""
    messages = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.messages.append((body["id"], tuple(c["id"] for c in body["changes"]), [c["to"] for c in body["changes"]]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def try_notifications(folder):
    """One of two servers sends; it is killed, and the other goes on: every change arrives, in order."""
    sql("CREATE DATABASE told")
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    file = os.path.join(folder, "notify.json")
    with open(file, "w") as out:
        json.dump([{"name": "ops", "format": "json", "url": "http://127.0.0.1:%d/" % receiver.server_address[1]}], out)
    servers = [Server(folder, name, "--notify", file, database="told") for name in ("told-a", "told-b")]
    config = {"bins": {"edges": [0, 1, 2]}, "reference": {"counts": [500, 500]}}
    expect(servers[0].ask("PUT", "/monitors/g/m?pool=1&clear_after=1", config)[0] == 201, "PUT")
    states = ["ok"]

    def change(n):
        for _ in range(n):
            states.append("critical" if states[-1] == "ok" else "ok")
            counts = [900, 100] if states[-1] == "critical" else [500, 500]
            status = servers[len(states) % len(servers)].ask("POST", "/monitors/g/m/observations", {"counts": counts})[0]
            expect(status == 200, "POST: %d" % status)

    def told():
        seen = {ids: states for _, ids, states in Receiver.messages}
        return [state for each in seen.values() for state in each]

    servers[0].ask("POST", "/monitors/g/m/observations", {"counts": [500, 500]})
    change(5)
    wait_until(lambda: told() == states[1:], "one of two servers sends: %r" % told())
    owner = sql("SELECT value FROM kldiv_meta WHERE name = 'notify_owner'", "told")
    change(3)
    expect(len(Receiver.messages) == 1, "each change is sent once: %r" % Receiver.messages)
    servers[0].end(signal.SIGKILL)
    killed = servers.pop(0)
    change(3)
    wait_until(lambda: told() == states[1:], "the other server goes on: %r of %r" % (told(), states), 90)
    killed.start()
    servers[0].end(signal.SIGKILL)
    servers = [killed]
    change(2)
    wait_until(lambda: told() == states[1:], "and the first one again: %r of %r" % (told(), states), 90)
    ids = {}
    expect(all(ids.setdefault(number, changes) == changes for number, changes, _ in Receiver.messages),
           "a repetition is the same")
    expect(owner != sql("SELECT value FROM kldiv_meta WHERE name = 'notify_owner'", "told"), "the sender changed")
    servers.append(Server(folder, "told-c", "--notify", file, database="told"))
    change(1)
    expect(servers.pop(0).end() == 0, "the end")
    wait_until(lambda: told() == states[1:], "the next one soon after a clean end: %r of %r" % (told(), states), 10)
    expect(servers[0].end() == 0, "the end")
    receiver.shutdown()
    print("one server sends notifications, another goes on: %d changes" % (len(states) - 1))


def main():
    sql("CREATE DATABASE kldiv")
    try_refusals()
    with tempfile.TemporaryDirectory() as folder:
        try_names(folder)
        try_notifications(folder)
        a, b = Server(folder, "a"), Server(folder, "b", "--ready-needs-store")
        port = free_port()
        config = os.path.join(folder, "haproxy.cfg")
        with open(config, "w") as file:
            file.write(HAPROXY.format(port=port, a=a.port, b=b.port))
        haproxy = subprocess.Popen(["haproxy", "-f", config], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: ask(port, "GET", "/livez")[0] == 200, "HAProxy answers")
            try_sharing(a, b)
            try_deletions(a, b)
            try_open_window(a, b)
            try_busy_server(a, b)
            try_unreadable(a, b)
            try_keys(a, b)
            try_load(a, b, port, 5, "two servers")
            try_load(a, b, port, 5, "a session that hangs", lambda: hold_lock(a, b))
            try_load(a, b, port, 6, "database stopped and started", lambda: stop_database(a, b))
            try_load(a, b, port, 6, "database crashed twice", lambda: crash_database(a, b))
            try_load(a, b, port, 6, "servers killed six times", lambda: kill_servers(a, b))
            try_load(a, b, port, 1, "a server that hangs", lambda: freeze_server(a, b),
                     also=(408,))  # a body that it had a part of has come too slowly by then
            try_uncertain_commit(a)
            try_older_copy(a, b)
            try_start_without(folder)
            wait_until(lambda: b.ask("GET", "/readyz")[0] == 200, "the others recover")
            expect(a.end() == 0 and b.end() == 0, "servers end with status 0")
        except BaseException:
            for server in (a, b):
                print(open(server.log).read()[-3000:])
            raise
        finally:
            haproxy.kill()
            for server in (a, b):
                server.process.kill()


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    main()
