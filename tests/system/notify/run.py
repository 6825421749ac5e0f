"""Notifications: a server before receivers that are slow, refuse, close, lie, are not who they should be, or lead
elsewhere; killed 50 times; and Debian's Alertmanager.

usage: run.py KLDIVD [SCENARIO]...
"""

import collections
import concurrent.futures
import glob
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

KLDIVD = os.path.abspath(sys.argv[1])
QUOTED = re.compile(r'"(?:[ !#-\[\]-~]|\\.)*"')
LINE = re.compile(r'20[0-9T:.-]+Z (?:error|warning|info|debug)(?: [!#-<>-\[\]-~]+)*(?: [a-z0-9_]+=(?:[!#-<>-\[\]-~]+|%s))*\n' %
                  QUOTED.pattern)
CONFIG = {"bins": {"edges": [0, 1, 2]}, "reference": {"counts": [500, 500]}}
GOOD, BAD = {"counts": [500, 500]}, {"counts": [900, 100]}


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, "not within %g s: %s" % (seconds, what))
        time.sleep(0.05)


Post = collections.namedtuple("Post", "at path headers body")


class Receiver:
    """Keeps what is posted. `answer` takes the handler and the number of posts; None is 200."""

    def __init__(self, answer=None, certificate=None, port=0):
        self.posts = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append(Post(time.monotonic(), self.path, self.headers, body))
                if answer is None or not answer(self, len(outer.posts)):
                    self.reply(200)

            def do_GET(self):
                outer.posts.append(Post(time.monotonic(), self.path, self.headers, b""))
                self.reply(200)

            def reply(self, status, headers=(), body=b"ok"):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                if "Content-Length" not in dict(headers):
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, scheme="http", path="/hook"):
        return "%s://127.0.0.1:%d%s" % (scheme, self.port, path)

    def changes(self):
        """Changes in the order of arrival, each once: (name, from, to)."""
        seen, found = set(), []
        for post in self.posts:
            for change in json.loads(post.body)["changes"]:
                if change["id"] not in seen:
                    seen.add(change["id"])
                    found.append((change["name"], change["from"], change["to"]))
        return found

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Server:
    def __init__(self, receivers, *flags, store="memory", ahead=None):
        self.folder = tempfile.mkdtemp()
        self.environment = None
        if ahead is not None:
            library = os.path.join(self.folder, "preload.so")
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", library,
                            os.path.join(os.path.dirname(__file__), "preload.c")], check=True)
            self.environment = {**os.environ, "LD_PRELOAD": library, "AHEAD": str(ahead)}
        self.store = store if store != "sqlite" else "sqlite:" + os.path.join(self.folder, "store.db")
        self.flags = flags
        self.set(receivers)
        self.starts = 0
        self.log = os.path.join(self.folder, "log")
        self.start()

    def set(self, receivers):
        with open(os.path.join(self.folder, "notify.json"), "w") as file:
            json.dump(receivers, file)

    def start(self):
        self.starts += 1
        port_file = os.path.join(self.folder, "port")
        if os.path.exists(port_file):
            os.remove(port_file)
        self.process = subprocess.Popen(
            [KLDIVD, "--listen", "127.0.0.1:0", "--port-file", port_file, "--store", self.store, "--notify",
             os.path.join(self.folder, "notify.json"), *self.flags], stdout=subprocess.DEVNULL, stderr=open(self.log, "a"),
            env=self.environment)
        wait_until(lambda: os.path.exists(port_file) and open(port_file).read().endswith("\n"), 20, "the server starts")
        self.port = int(open(port_file).read())

    def ask(self, method, path, body=None, headers=()):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), data, method=method,
                                         headers={"Content-Type": "application/json", **dict(headers)})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError("%s %s: %d %s" % (method, path, error.code, error.read()))
        return json.loads(text) if text.startswith("{") else text

    def put(self, name="a", group="g", query="?pool=1&clear_after=1"):
        self.ask("PUT", "/monitors/%s/%s%s" % (group, name, query), CONFIG)

    def post(self, counts, name="a", group="g", headers=()):
        return self.ask("POST", "/monitors/%s/%s/observations" % (group, name), counts, headers)

    def status(self, name="ops"):
        return [n for n in self.ask("GET", "/notifications")["notifications"] if n["name"] == name][0]

    def metric(self, line):
        return [float(text.rsplit(" ", 1)[1]) for text in self.ask("GET", "/metrics").split("\n")
                if text.startswith(line)][0]

    def expect_strict_log(self):
        """Time, level, words, then key=value: nothing that a receiver or its file says is a field, or a line."""
        for line in open(self.log):
            expect(LINE.fullmatch(line), "not key=value: " + line)
            expect(QUOTED.sub("", line).count("kind=audit") == line[25:].startswith("info request kind=audit id="), line)

    def end_and_keep(self):
        self.process.terminate()
        expect(self.process.wait(60) == 0, "the server ends with 0")
        if self.starts == 1:  # one that was killed may have left half a line
            self.expect_strict_log()

    def end(self):
        self.end_and_keep()
        shutil.rmtree(self.folder)


def one(receiver, **more):
    return {"name": "ops", "url": receiver.url(), "format": "json", **more}


def flap(server, n, name="a"):
    """Makes the state change n times; gives the changes that are told."""
    server.post(GOOD, name)
    for i in range(n):
        server.post(BAD if i % 2 == 0 else GOOD, name)
    return [(name, "ok", "critical") if i % 2 == 0 else (name, "critical", "ok") for i in range(n)]


def try_signature():
    """Many changes are one message, signed; secrets and URLs are shown nowhere."""
    receiver = Receiver()
    with tempfile.NamedTemporaryFile("w") as secret:
        secret.write("hush-hush\n")
        secret.flush()
        server = Server([one(receiver, secret_file=secret.name, header={"Authorization": "Bearer hidden-one"})],
                        "--log-level", "debug")
        server.put()
        begun = time.monotonic()
        told = flap(server, 7)
        wait_until(lambda: receiver.posts, 10, "the message")
        took = time.monotonic() - begun
        post = receiver.posts[0]
        expect(5 <= took < 8 and receiver.changes() == told, "%g s: %r" % (took, receiver.changes()))
        signed = post.headers["X-Kldiv-Timestamp"].encode() + b"." + post.body
        digest = hmac.new(b"hush-hush", signed, hashlib.sha256).hexdigest()
        expect(post.headers["X-Kldiv-Signature"] == "sha256=" + digest, "the signature")
        expect(post.headers["Authorization"] == "Bearer hidden-one", "the header field")
        expect(post.headers["Idempotency-Key"] == json.loads(post.body)["id"], "the id")
        expect(abs(int(post.headers["X-Kldiv-Timestamp"]) - time.time()) < 60, "the time")
        wait_until(lambda: server.status()["pending"] == 0, 3, "nothing waits")
        expect(server.metric('kldiv_notifications_total{name="ops",result="delivered"}') == 1, "the metric")
        test = server.ask("POST", "/notifications/ops/test")
        expect(test["delivered"] and test["status"] == 200 and test["answer"] == "ok", test)
        expect(json.loads(receiver.posts[1].body)["test"] is True, "a test is marked")
        shown = json.dumps(server.ask("GET", "/notifications")) + server.ask("GET", "/metrics") + open(server.log).read()
        for hidden in ("hush", "hidden-one", str(receiver.port) + "/hook"):
            expect(hidden not in shown, "%s is shown" % hidden)
        server.end()
    receiver.close()


def try_bad_receivers():
    """Each of these gets every change, in order, however it answers at first; none holds another up."""
    def hang(handler, n):
        if n == 1:
            time.sleep(40)

    def close(handler, n):
        if n <= 2:
            handler.close_connection = True
            handler.connection.close()
            return True

    def busy(handler, n):
        if n == 1:
            handler.reply(429, [("Retry-After", "4")], b"slowly\nsecond line")
            return True

    def fail(handler, n):
        if n <= 2:
            handler.reply(503, body=b"x" * 200000)
            return True

    def lie(handler, n):
        handler.reply(200, [("Content-Length", "1000")])
        handler.close_connection = True
        return True

    receivers = {answer.__name__: Receiver(answer) for answer in (hang, close, busy, fail, lie)}
    receivers["good"] = Receiver()
    server = Server([dict(one(receiver), name=name) for name, receiver in receivers.items()], store="sqlite")
    server.put()
    begun = time.monotonic()
    told = flap(server, 6)
    wait_until(lambda: receivers["good"].changes(), 8, "a good receiver beside bad ones")
    wait_until(lambda: server.status("busy")["failing_since"], 3, "busy fails")
    expect(server.status("busy")["failure"] == "status 429", server.status("busy"))
    wait_until(lambda: len(receivers["busy"].posts) == 2, 8, "busy is asked again")
    waited = receivers["busy"].posts[1].at - receivers["busy"].posts[0].at
    expect(waited >= 4, "Retry-After of 4 s: %g s" % waited)
    wait_until(lambda: len(receivers["fail"].posts) == 3, 10, "fail is asked three times")
    times = [post.at for post in receivers["fail"].posts]
    expect(0.9 < times[1] - times[0] < 2 < times[2] - times[1] + 0.2 < 4, "waits: %r" % times)
    more = flap(server, 4)
    wait_until(lambda: all(r.changes() == told + more for name, r in receivers.items() if name != "hang"), 30,
               "all changes: %r" % {name: len(r.changes()) for name, r in receivers.items()})
    wait_until(lambda: receivers["hang"].changes() == told + more, 60, "one that hung")
    expect(time.monotonic() - begun > 30, "an attempt may take 30 s")
    expect(len(receivers["lie"].posts) == 2, "what was answered 200 is not sent again")
    for receiver in receivers.values():
        ids = collections.defaultdict(set)
        for post in receiver.posts:
            ids[post.headers["Idempotency-Key"]].add(tuple(c["id"] for c in json.loads(post.body)["changes"]))
        expect(all(len(each) == 1 for each in ids.values()), "a repetition is the same: %r" % ids)
    server.end()
    for receiver in receivers.values():
        receiver.close()


def try_names():
    """A name whose look-up hangs holds up no other receiver, no change of the file, no test and not the end."""
    receiver = Receiver()
    good = {**one(receiver), "url": receiver.url().replace("127.0.0.1", "localhost")}
    server = Server([{"name": "bad", "url": "http://name.hangs/x", "format": "json"}, good], store="sqlite", ahead=0)
    server.put()
    told = flap(server, 2)
    wait_until(lambda: receiver.changes() == told, 9, "a good receiver beside one whose name hangs")
    begun = time.monotonic()
    expect(server.ask("POST", "/notifications/ops/test", {})["delivered"], "a test beside a look-up that hangs")
    expect(time.monotonic() - begun < 3, "a test takes %g s" % (time.monotonic() - begun))
    test = server.ask("POST", "/notifications/bad/test", {})
    expect(not test["delivered"] and "Timeout" in test["failure"] and test["seconds"] < 14, test)
    wait_until(lambda: server.status("bad")["failing_since"], 9, "the name that hangs has failed")
    server.set([good])
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(server.ask("GET", "/notifications")["notifications"]) == 1, 3, "SIGHUP")
    told += flap(server, 2)
    wait_until(lambda: [c for c in receiver.changes() if c[0] == "a"] == told, 9, "a good receiver after SIGHUP")
    server.set([{"name": "bad", "url": "http://name.hangs/x", "format": "json"}, good])
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(server.ask("GET", "/notifications")["notifications"]) == 2, 3, "SIGHUP")
    server.post(BAD)
    wait_until(lambda: len(receiver.changes()) == 5, 9, "a change that one look-up holds up")
    begun = time.monotonic()
    server.end()
    expect(time.monotonic() - begun < 5, "the end takes %g s" % (time.monotonic() - begun))
    receiver.close()


def try_look_ups():
    """Tests whose clients leave begin no number of look-ups, which end long after them."""
    server = Server([{"name": "bad", "url": "http://name.hangs/x", "format": "json"}], ahead=0)
    threads = len(os.listdir("/proc/%d/task" % server.process.pid))
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(b"POST /notifications/bad/test HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
            time.sleep(0.1)
    more = len(os.listdir("/proc/%d/task" % server.process.pid)) - threads
    expect(more < 5, "tests whose clients leave: %d look-ups more" % more)
    server.end()


def try_incident():
    """Columns that leave ok within the time in which changes wait are one message to each receiver."""
    receivers = [Receiver(), Receiver()]
    server = Server([one(receivers[0]), {**one(receivers[1]), "name": "people", "format": "slack"}])
    names = ["age", "income", "job", "sex", "zip", "city"]
    for name in names:
        server.put(name)
    at = "2026-01-01T%02d:00:00Z"
    server.ask("POST", "/monitors/g/city/observations?timestamp=" + at % 11, BAD)
    begun = time.monotonic()
    columns = {name: [0.5] * 60 + [1.5] * 6 for name in names[:5]}
    server.ask("POST", "/monitors/g/observations?timestamp=" + at % 12, {"columns": columns})
    server.ask("POST", "/monitors/g/city/observations?timestamp=" + at % 13, BAD)
    wait_until(lambda: all(receiver.posts for receiver in receivers), 10, "the messages")
    expect(time.monotonic() - begun < 8, "it waited %g s" % (time.monotonic() - begun))
    time.sleep(6)
    expect([len(receiver.posts) for receiver in receivers] == [1, 1], [[p.body for p in r.posts] for r in receivers])
    message, slack = (json.loads(receiver.posts[0].body)["text"] for receiver in receivers)
    expect(message == "g: 6 changes: 6 critical", message)
    changes = json.loads(receivers[0].posts[0].body)["changes"]
    shown = {member["name"]: member["began"] for member in server.ask("GET", "/groups/g")["drifting"]}
    expect({change["name"]: change["began"] for change in changes} == shown and set(shown) == set(names), (changes, shown))
    expect(all(began and began.startswith("2026-01-01T1") for began in shown.values()), shown)
    lines = slack.split("\n")
    expect(lines[0] == message and len(lines) == 7, slack)
    for name in names:
        expect(any(line.startswith("g / %s is critical since 2026-01-01T" % name) for line in lines), (name, slack))
    server.end()
    for receiver in receivers:
        receiver.close()


def try_segments():
    """What changes in a group and in its segments is one message, which names the group."""
    receivers = [Receiver(), Receiver()]
    server = Server([one(receivers[0]), {**one(receivers[1]), "name": "people", "format": "slack"}])
    rows = [{"country": country, "x": i % 7} for i in range(700) for country in ("DE", "FR", "US")]
    server.ask("PUT", "/monitors/g?by=country", {"rows": rows})
    server.ask("PUT", "/monitors/g2?by=country", {"rows": rows})
    for row in rows:
        row["x"] += 7 * (row["country"] != "DE")
    server.ask("POST", "/monitors/g/observations?by=country", {"rows": rows})
    wait_until(lambda: all(receiver.posts for receiver in receivers), 10, "the messages")
    time.sleep(6)
    expect([len(receiver.posts) for receiver in receivers] == [1, 1], [[p.body for p in r.posts] for r in receivers])
    message, slack = (json.loads(receiver.posts[0].body)["text"] for receiver in receivers)
    expect(message == "g: 3 changes: 3 critical", message)
    lines = slack.split("\n")
    for group in "g", "g[country=FR]", "g[country=US]":
        expect(any(line.startswith("%s / x is critical since" % group) for line in lines), (group, slack))
    server.end()
    for receiver in receivers:
        receiver.close()


def try_waiting():
    """What waits for a receiver after failures is sent as soon as a test arrives, and at SIGHUP; what GET /notifications
    says of it survives a kill."""
    failing = True

    def fail(handler, n):
        if failing:
            handler.reply(503)
        return failing

    receiver = Receiver(fail)
    server = Server([one(receiver)], store="sqlite")
    server.put()
    flap(server, 1)
    for wake in (lambda: expect(server.ask("POST", "/notifications/ops/test", {})["delivered"], "a test"),
                 lambda: server.process.send_signal(signal.SIGHUP)):
        before = len(receiver.posts)
        wait_until(lambda: len(receiver.posts) >= before + 4, 30, "four failures")  # the next attempt is 8 s later
        failing = False
        wake()
        wait_until(lambda: server.status()["pending"] == 0, 3, "what waits, at once")
        failing = True
        server.post(GOOD)
    before = len(receiver.posts)
    server.post(BAD)
    wait_until(lambda: len(receiver.posts) == before + 2, 30, "two failures")
    told = server.status()
    expect(told["last_success"] and told["failing_since"] and "503" in told["failure"], told)
    server.process.kill()
    server.process.wait()
    server.start()
    keys = ("last_success", "failing_since", "failure")
    wait_until(lambda: [server.status()[key] for key in keys] == [told[key] for key in keys], 5,
               "the history after a kill: %r, before: %r" % (server.status(), told))
    server.end()
    receiver.close()


def try_many_tests():
    """Tests of receivers that hang: one of each, 409 beside it, which end when their clients leave, and hold up no other."""
    hanging, receiver = Receiver(lambda handler, n: time.sleep(40)), Receiver()
    server = Server([{**one(hanging), "name": "hangs%d" % i} for i in range(5)] + [one(receiver)])
    head = "POST /notifications/hangs%d/test HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
    clients = []
    for i in range(5):
        for _ in range(4):
            clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            clients[-1].sendall((head % i).encode())
        wait_until(lambda: len(select.select(clients, [], [], 0)[0]) == 3 * (i + 1), 10, "refused tests of %d" % i)
        begun = time.monotonic()
        expect(server.ask("POST", "/notifications/ops/test", {})["delivered"], "a test of another one")
        expect(time.monotonic() - begun < 3, "the test took %g s" % (time.monotonic() - begun))
    for client in select.select(clients, [], [], 0)[0]:
        answer = client.recv(2000).decode()
        expect(answer.startswith("HTTP/1.1 409 ") and "test_running" in answer, answer)
    for client in clients:
        client.close()
    sent = len(hanging.posts)
    client = socket.create_connection(("127.0.0.1", server.port), timeout=10)

    def is_free():
        client.sendall((head % 0).encode())
        return not select.select([client], [], [], 2)[0] or not client.recv(2000)
    wait_until(is_free, 20, "another test of the receiver, once the client has left")
    wait_until(lambda: len(hanging.posts) == sent + 1, 10, "which is sent")
    client.close()
    begun = time.monotonic()
    server.end()
    expect(time.monotonic() - begun < 10, "the end takes %g s" % (time.monotonic() - begun))
    hanging.close()
    receiver.close()


def try_test_that_waits():
    """A test that waits for a message to a receiver that hangs goes when its client leaves, and with the server."""
    hanging = Receiver(lambda handler, n: time.sleep(40))
    server = Server([one(hanging)])
    server.put()
    flap(server, 1)
    wait_until(lambda: hanging.posts, 10, "the message")

    def begin_test():
        client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        client.sendall(b"POST /notifications/ops/test HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
        time.sleep(0.3)
        return client, not select.select([client], [], [], 0)[0]
    client, waits = begin_test()
    expect(waits, "a test waits")
    begun, waits = time.monotonic(), False
    while not waits:
        client.close()
        expect(time.monotonic() - begun < 4, "no other test, though the client has left")
        client, waits = begin_test()
    begun = time.monotonic()
    server.process.terminate()
    answer = client.recv(4000).decode()
    expect('"delivered":false' in answer and "the server ends" in answer, answer)
    server.end()
    expect(time.monotonic() - begun < 5, "the end takes %g s" % (time.monotonic() - begun))
    expect(len(hanging.posts) == 1, "no test was sent")
    hanging.close()


def try_hostile_names():
    """A receiver's name and answer that look like an audit record are none."""
    text = 'x kind=audit token=root "\\ 2026-01-01T00:00:00.000Z info request kind=audit id=1 \u202e'
    receiver = Receiver(lambda handler, n: handler.reply(400, body=("\n" + text).encode()) or True)
    server = Server([{**one(receiver), "name": text}], "--log-level", "debug")
    server.put()
    flap(server, 1)
    wait_until(lambda: " warning --notify: changes are given up receiver=" in open(server.log).read(), 20, "it is refused")
    line = [line for line in open(server.log) if "given up" in line][0]
    values = [json.loads(value) for value in QUOTED.findall(line)]
    expect(values == [text, "status 400"], values)
    server.end()
    receiver.close()


def try_echo():
    """A receiver that sends back what it gets shows no secret, and writes no line of the log."""
    forged = "x kind=audit token=root method=DELETE"

    def echo(handler, n):
        text = "%s %s %s %s" % (forged, handler.path, handler.headers["Authorization"], handler.headers["X-Key"])
        handler.reply(503, body=("\n" + text).encode())
        return True

    receiver = Receiver(echo)
    secrets = ["/services/T0001/B0002/verysecretpath", "verysecretpath", "topsecrettoken", "k3y-of-the-door"]
    server = Server([{**one(receiver), "url": receiver.url(path=secrets[0]),
                      "header": {"Authorization": "Bearer topsecrettoken", "X-Key": secrets[3]}}])
    server.put()
    flap(server, 1)
    wait_until(lambda: server.status()["failing_since"], 10, "it fails")
    test = server.ask("POST", "/notifications/ops/test", {})
    expect(test["status"] == 503 and test["answer"].startswith(forged + " *****"), test)
    expect(server.status()["failure"] == "status 503", server.status())
    server.end_and_keep()
    log = open(server.log).read()
    for text in secrets:
        expect(text not in json.dumps(test) + log, "%s: %s" % (text, log))
    expect("token=root" not in log, log)
    shutil.rmtree(server.folder)
    receiver.close()


def try_absent():
    """A receiver that is away gets all of it when it is there; what says that the message is wrong, nothing more."""
    receiver = Receiver()
    port = receiver.port
    receiver.close()
    server = Server([one(receiver)], store="sqlite")
    server.put()
    told = flap(server, 3)
    wait_until(lambda: server.status()["failing_since"], 10, "it fails")
    expect(server.status()["pending"] == 3, server.status())
    server.process.send_signal(signal.SIGTERM)
    server.process.wait()
    server.start()
    receiver = Receiver(port=port)
    wait_until(lambda: receiver.changes() == told, 20, "what waited")
    wait_until(lambda: server.status()["failing_since"] is None, 5, "it works again")
    receiver.close()
    wrong = Receiver(lambda handler, n: handler.reply(400) or True)
    server.set([one(wrong)])
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "read 1 receivers" in open(server.log).read().split("SIGHUP")[-1], 5, "SIGHUP")
    server.post(GOOD)
    wait_until(lambda: server.metric('kldiv_notifications_total{name="ops",result="refused"}') == 1, 20, "it is refused")
    wait_until(lambda: server.status()["pending"] == 0, 5, "and given up")
    server.set([{"name": "ops"}])
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "#/0/url: is missing" in open(server.log).read(), 5,
               "a bad file is told: " + open(server.log).read()[-300:])
    server.end()
    wrong.close()


def try_traces():
    """A message names the trace of the request that made the change, also after a crash, and goes on with it."""
    first, second = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319d"
    span = "b7ad6b7169203331"

    def trace(number):
        return [("traceparent", "00-%s-%s-01" % (number, span))]

    receiver = Receiver()
    port = receiver.port
    receiver.close()
    server = Server([one(receiver)], store="sqlite")
    for group, name in (("one", "a"), ("two", "a"), ("two", "b"), ("none", "a"), ("bad", "a"), ("same", "a"), ("same", "b")):
        server.put(name, group)
        server.post(GOOD, name, group)
    server.post(BAD, "a", "one", trace(first))
    server.post(BAD, "a", "two", trace(first))
    server.post(BAD, "b", "two", trace(second))
    server.post(BAD, "a", "none")
    server.post(BAD, "a", "bad", [("traceparent", "00-%s-%s-01-x" % (first, span))])
    server.post(BAD, "a", "same", trace(second))
    server.post(BAD, "b", "same")
    server.process.kill()
    server.process.wait()
    server.start()
    receiver = Receiver(port=port)
    wait_until(lambda: len(receiver.posts) == 5, 30, "five messages: %d" % len(receiver.posts))
    found = {}
    for post in receiver.posts:
        changes = json.loads(post.body)["changes"]
        found[changes[0]["group"]] = ({c["name"]: c.get("trace_id") for c in changes}, post.headers["traceparent"])
    for group, traces, of_message in (("one", {"a": first}, first), ("two", {"a": first, "b": second}, None),
                                      ("none", {"a": None}, None), ("bad", {"a": None}, None),
                                      ("same", {"a": second, "b": None}, second)):
        expect(found[group][0] == traces, "%s: %r" % (group, found[group]))
        parts = (found[group][1] or "").split("-")
        if of_message is None:
            expect(found[group][1] is None, "%s: %r" % (group, found[group]))
        else:
            expect(parts[:2] == ["00", of_message] and parts[3:] == ["01"], "%s: %r" % (group, parts))
            expect(len(parts[2]) == 16 and parts[2] != span and int(parts[2], 16) > 0, "a span of its own: %r" % parts)
    server.end()
    receiver.close()


def make_certificate(folder, name):
    path = os.path.join(folder, name + ".pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path,
                    "-out", path + ".crt"], check=True, stderr=subprocess.DEVNULL)
    with open(path, "a") as file:
        file.write(open(path + ".crt").read())
    return path


def try_strangers():
    """Certificates are checked; redirects are not followed, so that nothing inside is ever called."""
    with tempfile.TemporaryDirectory() as folder:
        known, other = make_certificate(folder, "known"), make_certificate(folder, "other")
        inside = Receiver()
        trusted, stranger, plain = Receiver(certificate=known), Receiver(certificate=other), Receiver(certificate=known)
        redirect = Receiver(lambda handler, n: handler.reply(307, [("Location", inside.url())]) or True)
        server = Server([
            {"name": "trusted", "url": trusted.url("https"), "format": "json", "ca_file": known + ".crt"},
            {"name": "stranger", "url": stranger.url("https"), "format": "json", "ca_file": known + ".crt"},
            {"name": "plain", "url": plain.url("https"), "format": "json"},
            {"name": "redirect", "url": redirect.url(), "format": "slack"}])
        test = server.ask("POST", "/notifications/trusted/test")
        expect(test["delivered"], test)
        for name in ("stranger", "plain"):
            test = server.ask("POST", "/notifications/%s/test" % name)
            expect(not test["delivered"] and test["status"] is None and "certificate" in test["failure"].lower(), test)
        test = server.ask("POST", "/notifications/redirect/test")
        expect(test["status"] == 307 and "redirects are not followed" in test["failure"], test)
        server.put()
        server.post(BAD)
        wait_until(lambda: len(redirect.posts) >= 3, 15, "it is asked again")
        expect(not inside.posts and not stranger.posts and not plain.posts, "nobody else is called")
        server.end()


def try_kills():
    """kill -9 between commit and send, and while it sends: every change arrives, in order."""
    receiver = Receiver()
    server = Server([one(receiver)], store="sqlite")
    server.put()
    server.post(GOOD)
    told, state = [], "ok"
    for i in range(50):
        after = "critical" if state == "ok" else "ok"
        server.post(BAD if after == "critical" else GOOD)
        told.append(("a", state, after))
        state = after
        time.sleep(random.random() * 0.05 if i % 5 else 4.95 + random.random() * 0.1)
        server.process.kill()
        server.process.wait()
        server.start()
    wait_until(lambda: len(receiver.changes()) == 50, 20, "all changes: %d" % len(receiver.changes()))
    expect(receiver.changes() == told, "their order: %r" % receiver.changes())
    print("    50 kills: %d messages, %d of them twice" %
          (len({p.headers["Idempotency-Key"] for p in receiver.posts}),
           len(receiver.posts) - len({p.headers["Idempotency-Key"] for p in receiver.posts})))
    server.end()
    receiver.close()


def try_mute_and_stale():
    """Of muted monitors nobody is told. One without observations is stale, once, also after a start."""
    receiver = Receiver()
    server = Server([one(receiver)], store="sqlite")
    server.put("loud")
    server.put("muted")
    server.put("silent", query="?pool=1&clear_after=1&stale_after=2")
    server.ask("POST", "/monitors/g/muted/mute", {"seconds": 600, "reason": "new pipeline"})
    for name in ("loud", "muted", "silent"):
        server.post(GOOD, name)
    server.post(BAD, "muted")
    server.post(BAD, "loud")
    wait_until(lambda: len(receiver.changes()) == 2, 15, "%r" % receiver.changes())
    expect(sorted(receiver.changes()) == [("loud", "ok", "critical"), ("silent", "ok", "stale")], receiver.changes())
    server.process.kill()
    server.process.wait()
    server.start()
    server.post(GOOD, "silent")
    wait_until(lambda: len(receiver.changes()) >= 4, 20, "%r" % receiver.changes())
    expect(receiver.changes()[2:4] == [("silent", "stale", "ok"), ("silent", "ok", "stale")], receiver.changes())
    expect(not any(name == "muted" for name, _, _ in receiver.changes()), "the muted one")
    server.end()
    receiver.close()


def try_history():
    """Of history that is loaded nothing is told but its drift: neither that it is old, nor that observations come again, nor
    at the end of a mute. What former versions stored is read: a silence that receivers know ends for them; a mute of a group until all is ok
    ends at once."""
    receiver = Receiver()
    server = Server([one(receiver)], store="sqlite")
    names = "0abc"
    for name in names:
        server.put(name, "old", "?pool=1&clear_after=1&stale_after=3600")
    server.ask("POST", "/monitors/old/0/mute", {"seconds": 600})
    table = {"columns": {name: [0.5, 1.5] * 100 for name in names}}
    for month in (1, 2):
        server.ask("POST", "/monitors/old/observations?timestamp=2024-%02d-01T00:00:00Z" % month, table)
    expect(all(server.ask("GET", "/monitors/old/" + name)["stale"] for name in names), "they are stale")
    server.post({**BAD, "timestamp": "2024-03-01T00:00:00Z"}, "a", "old")
    wait_until(receiver.changes, 15, "the drift")
    server.ask("DELETE", "/monitors/old/0/mute")
    time.sleep(7)
    expect(receiver.changes() == [("a", "ok", "critical")], receiver.changes())
    server.end_and_keep()
    with sqlite3.connect(server.store[len("sqlite:"):]) as store:
        for stored, name in ((2, "0"), (3, "b"), (4, "c")):
            store.execute("UPDATE kldiv_monitors SET stale_told = ? WHERE name = ?", (stored, name))
        store.execute("INSERT INTO kldiv_mutes (group_name, name, until_at, reason) VALUES ('old', '', ?, '')", (2**63 - 1,))
    store.close()
    server.start()
    wait_until(lambda: server.ask("GET", "/groups/old")["muted"] is None, 15, "the mute of the group has ended")
    server.ask("POST", "/monitors/old/observations", table)
    wait_until(lambda: len(receiver.changes()) > 2, 15, "the next changes")
    time.sleep(7)
    expect(sorted(receiver.changes()) == [("a", "critical", "ok"), ("a", "ok", "critical"), ("c", "stale", "ok")], receiver.changes())
    events = server.ask("GET", "/events?group=old")["events"]
    silences = [(event["name"], event["from"]) for event in events if event["window"] is None]
    expect(silences == [("c", "stale")], events)
    server.end()
    receiver.close()


def try_mute_and_silence():
    """At the end of a mute receivers are told the state and the silence that came meanwhile, and that a silence of which
    they know is over."""
    receiver = Receiver()
    server = Server([one(receiver)], store="sqlite")
    for name in ("worse", "better", "heard"):
        server.put(name, query="?pool=1&clear_after=1&stale_after=3")
    for name in ("worse", "better", "heard"):
        server.post(GOOD, name)
    server.post(BAD, "better")
    known = [("better", "critical", "stale"), ("better", "ok", "critical"), ("heard", "ok", "stale"), ("worse", "ok", "stale")]
    wait_until(lambda: sorted(receiver.changes()) == known, 20, "what receivers know")
    for name in ("worse", "better", "heard"):
        server.ask("POST", "/monitors/g/%s/mute" % name, {"seconds": 600})
    server.post(BAD, "worse")
    server.post(GOOD, "better")
    server.post(BAD, "heard")
    server.post(GOOD, "heard")
    wait_until(lambda: all(server.ask("GET", "/monitors/g/" + name)["stale"] for name in ("worse", "better")), 20, "silence")
    time.sleep(2)  # until maintenance has seen it
    before = len(receiver.changes())
    server.post(GOOD, "heard")
    for name in ("worse", "better", "heard"):
        server.ask("DELETE", "/monitors/g/%s/mute" % name)
    wanted = {"worse": ["stale", "critical", "stale"], "better": ["stale", "ok", "stale"], "heard": ["stale", "ok"]}

    def told(name):
        """The states that receivers were told since, with the one that they knew."""
        changes = [change for change in receiver.changes()[before:] if change[0] == name]
        return [changes[0][1]] + [change[2] for change in changes] if changes else []
    wait_until(lambda: all(told(name)[:len(states)] == states for name, states in wanted.items()), 20, "the end of the mutes")
    server.end()
    receiver.close()


def try_mute_ends():
    """At the end of a mute receivers are told how a monitor is, if that is not what they know; also after a kill. Mutes of
    former versions, until a monitor was ok, are over."""
    receiver = Receiver()
    server = Server([one(receiver)], store="sqlite")
    for name in ("deleted", "over", "same", "former"):
        server.put(name)
        server.post(GOOD, name)
    server.post(BAD, "former")
    wait_until(lambda: receiver.changes() == [("former", "ok", "critical")], 15, receiver.changes())
    for name in ("deleted", "same", "former"):
        muted = server.ask("POST", "/monitors/g/%s/mute" % name, {"seconds": 600, "reason": "Ann looks at it"})
        expect(muted["muted"]["reason"] == "Ann looks at it" and muted["muted"]["scope"] == "monitor", muted)
    server.ask("POST", "/monitors/g/over/mute", {"seconds": 12})
    for name in ("deleted", "over", "same"):
        server.post(BAD, name)
    for name in ("same", "former"):
        server.post(GOOD, name)
    time.sleep(7)
    expect(len(receiver.posts) == 1, [post.body for post in receiver.posts])
    server.process.kill()
    server.process.wait()
    with sqlite3.connect(server.store[len("sqlite:"):]) as store:
        store.execute("UPDATE kldiv_mutes SET until_at = ? WHERE name = 'former'", (2**63 - 1,))
        store.execute("INSERT INTO kldiv_outbox (receiver, id, message, queued, monitor, group_name, name, from_state, to_state, "
                      "at, since, kl, sentence) SELECT 'ops', 1, 0, 1000000 * CAST(strftime('%s', 'now') AS INTEGER), id, 'g', '', "
                      "3, 3, 0, 0, 0, 'muted by ann' FROM kldiv_monitors LIMIT 1")
    store.close()
    server.start()
    expect(server.ask("GET", "/monitors/g/former")["muted"] is None, "a mute of a former version")
    for name in ("deleted", "same"):
        server.ask("DELETE", "/monitors/g/%s/mute" % name)
    wait_until(lambda: sorted(receiver.changes()[1:]) == [("deleted", "ok", "critical"), ("former", "critical", "ok"),
                                                          ("over", "ok", "critical")], 25, receiver.changes())
    wait_until(lambda: server.status()["pending"] == 0, 8, "what a former version stored of a mute goes")
    expect(all(b"muted by" not in post.body for post in receiver.posts), [post.body for post in receiver.posts])
    server.end()
    receiver.close()


def memory_of(process):
    with open("/proc/%d/status" % process.pid) as file:
        return [int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")][0]


def try_crowd():
    """10,000 monitors that change at once: a message a group, within 10 s."""
    receiver, table = Receiver(), {"columns": {"c%d" % i: [0.5, 1.5] * 30 for i in range(2000)}}
    drift = {"columns": {name: [0.5] * 200 for name in table["columns"]}}
    server = Server([one(receiver), dict(one(receiver), name="second", url=receiver.url(path="/second"))],
                    store="sqlite")
    for group in range(5):
        server.ask("PUT", "/monitors/crowd%d?pool=1&method=width&bins=2" % group, table)
    before, begun = memory_of(server.process), time.monotonic()
    for group in range(5):
        server.ask("POST", "/monitors/crowd%d/observations" % group, drift)
    closed = time.monotonic()
    wait_until(lambda: len(receiver.posts) >= 10, 30, "the messages: %d" % len(receiver.posts))
    last = max(post.at for post in receiver.posts) - closed
    groups = collections.Counter((post.path, json.loads(post.body)["changes"][0]["group"]) for post in receiver.posts)
    expect(set(groups.values()) == {1} and len(groups) == 10, "a message for each group and name: %r" % groups)
    expect(all(len(json.loads(post.body)["changes"]) == 2000 for post in receiver.posts), "all changes")
    expect(last < 10, "the last one %g s after" % last)
    print("    10,000 monitors closed in %.1f s; the last message %.1f s later; %.0f MB more at most" %
          (closed - begun, last, memory_of(server.process) - before))
    server.end()
    receiver.close()


def processor_seconds(process):
    """What the threads of a process have run, by the scheduler's nanoseconds."""
    files = glob.glob("/proc/%d/task/*/schedstat" % process.pid)
    return sum(int(open(file).read().split()[0]) for file in files) * 1e-9


def try_hanging_costs_nothing():
    """An observation takes as much of the processors with a receiver that hangs as with none that has anything to do."""
    hanging = Receiver(lambda handler, n: time.sleep(600))
    taken, longest = {True: [], False: []}, 0
    servers = {True: Server([one(hanging)], store="sqlite"), False: Server([], store="sqlite")}
    for server in servers.values():
        server.put(query="?window=100000&pool=1")
        server.put("b")
        server.post(GOOD, "b")
        server.post(BAD, "b")
    wait_until(lambda: hanging.posts, 10, "it hangs")
    for _ in range(9):
        for hangs, server in servers.items():
            before = processor_seconds(server.process)
            for _ in range(200):
                begun = time.monotonic()
                server.post({"counts": [1, 1]})
                longest = max(longest, time.monotonic() - begun)
            taken[hangs].append((processor_seconds(server.process) - before) / 200)
    least = {hangs: min(each) * 1e6 for hangs, each in taken.items()}
    print("    %.0f us of the processors a post with a receiver that hangs, %.0f without" % (least[True], least[False]))
    expect(least[True] < 1.3 * least[False], least)
    expect(longest < 10, "a post took %g s" % longest)
    servers[False].end()
    servers[True].process.kill()


def try_slow_store():
    """A store that stands still for 25 s delays no message that is under way: it is sent once, and not again."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../postgresql/cluster.sh")
    with tempfile.TemporaryDirectory(prefix="kldiv-notify-") as folder:
        os.chmod(folder, 0o755)
        subprocess.run(["sh", script, "start", folder + "/cluster"], check=True)
        server = None
        try:
            slow, quick = Receiver(lambda handler, n: n == 1 and time.sleep(28)), Receiver()
            receivers = [one(slow, groups=["slow"]), dict(one(quick, groups=["quick"]), name="quick")]
            server = Server(receivers, store="postgresql://kldiv@/postgres?host=" + folder + "/cluster")
            server.put(group="slow")
            server.post(GOOD, group="slow")
            server.post(BAD, group="slow")
            wait_until(lambda: slow.posts, 10, "the message")
            time.sleep(slow.posts[0].at + 12 - time.monotonic())
            postmaster = int(open(folder + "/cluster/data/postmaster.pid").readline())
            backends = [int(pid) for pid in open("/proc/%d/task/%d/children" % (postmaster, postmaster)).read().split()]
            for sent in signal.SIGSTOP, signal.SIGCONT:
                for pid in backends:
                    os.kill(pid, sent)
                time.sleep(25 if sent == signal.SIGSTOP else 8)
            expect(len(slow.posts) == 1, "sent %d times" % len(slow.posts))
            wait_until(lambda: server.status()["pending"] == 0, 30, "nothing waits")
        finally:
            if server:
                server.process.kill()
            subprocess.run(["sh", script, "kill", folder + "/cluster"], check=True)


def try_second_server():
    """Of two servers on a database one sends; the other one looks once a second, also for an Alertmanager, and takes over."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../postgresql/cluster.sh")
    with tempfile.TemporaryDirectory(prefix="kldiv-notify-") as folder:
        os.chmod(folder, 0o755)
        subprocess.run(["sh", script, "start", folder + "/cluster"], check=True)
        receiver, servers = Receiver(), []
        try:
            for _ in range(2):
                servers.append(Server([one(receiver, format="alertmanager")],
                                      store="postgresql://kldiv@/postgres?host=" + folder + "/cluster"))
                time.sleep(2)
            writes = [server.metric('kldiv_store_operation_duration_seconds_count{operation="write"}') for server in servers]
            time.sleep(5)
            for server, before in zip(servers, writes):
                made = server.metric('kldiv_store_operation_duration_seconds_count{operation="write"}') - before
                expect(made < 40, "%g transactions in 5 s" % made)
            servers[1].put()
            flap(servers[1], 1)
            wait_until(lambda: receiver.posts, 9, "the change")
            sent = len(receiver.posts)  # the next of this server is due in a minute
            servers[0].end()
            wait_until(lambda: len(receiver.posts) > sent, 3, "the other one repeats it")
            servers[1].end()
        finally:
            for server in servers:
                server.process.kill()
            subprocess.run(["sh", script, "kill", folder + "/cluster"], check=True)
        receiver.close()


def try_alertmanager():
    """Debian's Alertmanager, set up as in docker/, has the alert while the drift lasts, by labels that a silence
    matches; then it resolves."""
    def start(folder):
        """Starts it at a port that is free now; (process, port)."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        return subprocess.Popen(
            ["prometheus-alertmanager", "--config.file=docker/alertmanager/alertmanager.yml", "--storage.path=" + folder, "--cluster.listen-address=",
             "--web.listen-address=127.0.0.1:%d" % port], stderr=open(os.path.join(folder, "log"), "w")), port

    with tempfile.TemporaryDirectory() as folder:
        alertmanager, port = start(folder)
        for _ in range(20):
            time.sleep(0.5)
            if alertmanager.poll() is None and "Listening" in open(os.path.join(folder, "log")).read():
                break
            if alertmanager.poll() is not None:  # another one has taken the port meanwhile
                alertmanager, port = start(folder)
        url = "http://127.0.0.1:%d" % port

        def ask(path, body=None):
            request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(),
                                             headers={"Content-Type": "application/json"})
            return json.loads(urllib.request.urlopen(request).read())

        def is_up():
            try:
                return ask("/api/v2/status")
            except (OSError, ValueError, http.client.HTTPException):
                return False

        def alerts():
            return {(a["labels"]["monitor"], a["labels"]["severity"]): a["status"]["state"] for a in ask("/api/v2/alerts")}

        server = None
        try:
            wait_until(is_up, 120, "Alertmanager starts")
            receivers = [dict(receiver, url=url + "/") for receiver in json.load(open("docker/notify.json"))]
            server = Server(receivers, "--public-url", "https://kldiv.example/")
            server.put("a")
            server.put("b")
            for name in "ab":
                server.post(GOOD, name)
                server.post(BAD, name)
            wait_until(lambda: set(alerts()) == {("a", "critical"), ("b", "critical")}, 15, "the alerts: %r" % alerts())
            alert = ask("/api/v2/alerts")[0]
            expect(alert["generatorURL"].startswith("https://kldiv.example/dashboard/?group=g&monitor="), alert)
            expect("50 %" in alert["annotations"]["description"], alert)
            expect(alert["annotations"]["began"] == server.ask("GET", "/monitors/g/" + alert["labels"]["monitor"])["began"], alert)
            matchers = [{"name": "monitor", "value": "b", "isRegex": False, "isEqual": True}]
            now = time.time()
            ask("/api/v2/silences", {"matchers": matchers, "createdBy": "test", "comment": "test",
                                     "startsAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 1)),
                                     "endsAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 600))})
            wait_until(lambda: alerts()[("b", "critical")] == "suppressed", 10, "the silence holds")
            server.post(GOOD, "a")
            wait_until(lambda: set(alerts()) == {("b", "critical")}, 15, "it resolves: %r" % alerts())
        finally:
            alertmanager.kill()
            if server:
                server.process.kill()


MEASURING = ("crowd", "hanging_costs_nothing")  # of time and work: nothing runs beside these
AT_ONCE = 3  # others mostly wait


def run(name):
    scenario = globals()["try_" + name]
    begun = time.monotonic()
    scenario()
    print("%s (%.0f s): %s" % (name, time.monotonic() - begun, scenario.__doc__.split("\n")[0]), flush=True)


def main():
    known = [name[4:] for name in globals() if name.startswith("try_")]
    names = [name for name in known if name in (sys.argv[2:] or known)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(run, [name for name in names if name not in MEASURING]))
    for name in names:
        if name in MEASURING:
            run(name)


main()
