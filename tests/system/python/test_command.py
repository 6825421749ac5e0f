"""python -m kldiv; and the monitors of asyncio."""
import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
from service import Server

import kldiv


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        rng = np.random.default_rng(1)
        for name, mean, n in ("train", 0, 2000), ("same", 0, 500), ("shifted", 2, 500):
            with open(cls.path(name), "w", encoding="ascii") as file:
                file.write("x,k\n" + "".join(f"{x:.3f},{k}\n" for x, k in zip(rng.normal(mean, 1, n), rng.choice(["a", "b"], n))))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.directory.name, f"{name}.csv")

    def run_command(self, *arguments, status=0, stdin=b""):
        ran = subprocess.run([sys.executable, "-m", "kldiv", "--url", self.server.url, *arguments],
                             capture_output=True, input=stdin, timeout=60)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return (ran.stdout + ran.stderr).decode()

    def test_a_day(self):
        self.assertIn("2 monitors: x, k", self.run_command("reference", "shell", self.path("train"), "--set", "critical=0.3"))
        self.run_command("reference", "daily", self.path("train"), "--set", "window=1d")
        self.assertRegex(self.run_command("observe", "daily", self.path("shifted")),
                         "^0 of 2 columns drift; 1 more would if its open window closed now\n\ncolumn .*\nx +critical")
        self.assertRegex(self.run_command("observe", "shell", self.path("same")), "^0 of 2 columns drift\n\ncolumn +verdict +KL .*\n[xk] +ok .*\n[xk] +ok")
        self.assertIn("0 of 2 monitors drift", self.run_command("watch", "shell", "--once"))
        self.assertRegex(self.run_command("evaluate", "shell", self.path("shifted"), status=2), "\nx +critical .*mean .* → ")
        self.assertRegex(self.run_command("observe", "shell", self.path("shifted"), status=2), "\nx +critical ")
        self.run_command("observe", "shell", self.path("shifted"), status=2)
        self.assertEqual(len(kldiv.Client(self.server.url).group("shell").windows("x")), 2)
        self.run_command("observe", "shell", self.path("shifted"), "--again", status=2)
        self.assertEqual(len(kldiv.Client(self.server.url).group("shell").windows("x")), 3)
        self.assertRegex(self.run_command("watch", "shell", "--once", status=2), "1 of 2 monitors drifts\n  critical x: KL")

    def test_errors_are_a_line(self):
        for arguments, words in [(["observe", "none", self.path("same")], "group_not_found"),
                                 (["reference", "x", "nothing.csv"], "nothing.csv"),
                                 (["reference", "x", self.path("train"), "--set", "window"], "SETTING=VALUE"),
                                 (["reference", "x", self.path("train"), "--set", "windw=1"], "did you mean 'window'")]:
            said = self.run_command(*arguments, status=1)
            self.assertIn(words, said)
            self.assertEqual(said.count("\n"), 1)

    def test_usage_is_not_drift(self):
        for arguments in [], ["nothing"], ["observe"], ["observe", "g"], ["observe", "g", "x", "--no"], ["watch", "g", "--every", "x"]:
            self.assertIn("usage: ", self.run_command(*arguments, status=64))
        self.assertEqual(self.run_command("--version"), f"kldiv {kldiv.__version__}\n")
        self.assertIn("Exit status: 2", self.run_command("--help"))

    def test_json_standard_input_and_gzip(self):
        monitors = json.loads(self.run_command("--json", "reference", "json", self.path("train")))
        self.assertEqual([config["name"] for config in monitors], ["x", "k"])
        with open(self.path("shifted"), "rb") as file:
            body = file.read()
        with gzip.open(self.path("packed") + ".gz", "wb") as file:
            file.write(body)
        answers = [json.loads(self.run_command("--json", "evaluate", "json", path, status=2, stdin=stdin)) for path, stdin in (
            (self.path("shifted"), b""), (self.path("packed") + ".gz", b""), ("-", body))]
        self.assertEqual({answer["monitors"][0]["kl"] for answer in answers}, {answers[0]["monitors"][0]["kl"]})
        for replayed in False, True:
            answer = self.run_command("--json", "observe", "json", "-", status=2, stdin=body)
            self.assertEqual(json.loads(answer.splitlines()[0])["replayed"], replayed)
            self.assertEqual("key=None" in answer, replayed)
        self.assertEqual(json.loads(self.run_command("--json", "watch", "json", "--once", status=2))["group"], "json")

    def test_an_empty_file_is_an_error(self):
        self.run_command("reference", "empty", self.path("train"))
        for body in b"", b"\n", b"x,k\n":
            with open(self.path("empty"), "wb") as file:
                file.write(body)
            for command in "observe", "evaluate":
                self.run_command(command, "empty", self.path("empty"), status=1)
                self.run_command(command, "empty", "-", status=1, stdin=body)
        self.run_command("reference", "empty", "-", status=1)

    def test_files_of_other_kinds_and_encodings(self):
        rows = [{"k": word, "n": n} for word in ("café", "thé") for n in (1, 2) for _ in range(9)]
        text = "k,n\n" + "".join(f"{row['k']},{row['n']}\n" for row in rows)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        russian = text.replace("café", "кофе").replace("thé", "чай")
        configs = []
        for suffix, content, encoding in [
                ("csv", text, "utf-8"), ("txt", text, "utf-8"), ("txt", text, "cp1252"), ("csv", text, "utf-16"),
                ("jsonl", lines, "utf-8"), ("CSV", text, "utf-8"), ("ndjson", lines, "latin-1"), ("csv", russian, "cp1251")]:
            body, arguments = content.encode(encoding), ["--encoding", encoding] if encoding != "utf-8" else []
            path = os.path.join(self.directory.name, f"kinds.{suffix}")
            with open(path, "wb") as file:
                file.write(body)
            with gzip.open(f"{path}.{'GZ' if suffix == 'CSV' else 'gz'}", "wb") as file:
                file.write(body)
            for each in path, f"{path}.{'GZ' if suffix == 'CSV' else 'gz'}", *(["-"] if suffix in ("csv", "txt") else []):
                said = self.run_command("--json", "reference", "kinds", each, *arguments, stdin=body)
                configs.append([(config["name"], config["bins"], config["reference"]) for config in json.loads(said.splitlines()[0])])
                for command in "observe", "evaluate":
                    self.assertIn('"kl": 0,', self.run_command("--json", command, "kinds", each, *arguments, stdin=body))
        labels = [dict((name, bins) for name, bins, _ in config)["k"]["labels"] for config in configs]
        self.assertEqual({tuple(sorted(each)) for each in labels}, {("café", "thé"), ("кофе", "чай")})
        self.assertTrue(all(config == configs[0] for config in configs[:-3]), configs)
        for arguments, words in [(["--encoding", "ascii"], "'ascii' codec can't decode"), (["--encoding", "rot13"], "not a text encoding"),
                                 (["--encoding", "none"], "unknown encoding"), ([], "is not UTF-8")]:
            self.assertIn(words, self.run_command("evaluate", "kinds", path, *arguments, status=1))
        with gzip.open(self.path("rows") + ".jsonl.gz", "wb") as file:
            file.write(b'{"k": 1}\n\n[2]\n')
        self.assertIn("line 3", self.run_command("evaluate", "kinds", self.path("rows") + ".jsonl.gz", status=1))

    def test_the_exit_status_goes_by_the_state(self):
        self.run_command("reference", "state", self.path("train"), "--set", "fire_after=2")
        said = json.loads(self.run_command("--json", "observe", "state", self.path("shifted")).splitlines()[0])
        self.assertEqual([(each["verdict"], each["state"]) for each in said["monitors"]][0], ("critical", "ok"))
        self.run_command("--json", "observe", "state", self.path("shifted"), "--again", status=2)

    def test_two_files_need_no_service(self):
        other = {"KLDIV_URL": "http://127.0.0.1:1", "KLDIV_SERVER": os.environ["KLDIV_SERVER"]}

        def run(*arguments, status=0, stdin=b"", **environment):
            ran = subprocess.run([sys.executable, "-m", "kldiv", *arguments], capture_output=True, input=stdin, timeout=60,
                                 env={**os.environ, **other, **environment})
            self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
            return (ran.stdout + ran.stderr).decode()

        train, same, shifted = (self.path(name) for name in ("train", "same", "shifted"))
        page = os.path.join(self.directory.name, "page.html")
        self.assertRegex(run(train, shifted, status=2), f"^{train} → {shifted}: 1 of 2 columns drifts\n\ncolumn .*\nx +critical +[0-9.]+  "
                         "mean .* → .*\nk +ok +[0-9e.-]+\n$")
        self.assertIn("0 of 2 columns drift", run("compare", train, same))
        self.assertIn("0 of 1 column drift\n", run("--set", "exclude=x", train, shifted))
        with open(shifted, "rb") as file:
            body = file.read()
        said = json.loads(run(train, "-", "--json", "--html", page, status=2, stdin=gzip.compress(body)))
        self.assertEqual([(each["name"], each["verdict"]) for each in said["columns"]], [("x", "critical"), ("k", "ok")])
        with open(page, encoding="utf-8") as file:
            html = file.read()
        self.assertEqual([html.count(part) for part in ("<svg", "<script", "src=", "href=")], [1, 0, 0, 0])
        self.assertEqual(said, json.loads(run("--url", self.server.url, train, shifted, "--json", status=2)))
        lines = os.path.join(self.directory.name, "columns.jsonl.gz")
        with gzip.open(lines, "wb") as file:
            for line in body.decode().split()[1:]:
                x, k = line.split(",")
                file.write(json.dumps({"x": float(x), "k": "ü" if k == "a" else k, "new": 1}, ensure_ascii=False).encode("cp1252") + b"\n")
        told = run(train, lines, "--encoding", "cp1252", status=2)
        self.assertIn("“ü”, never seen before, is ", told)
        self.assertIn("\nnew: the reference has no such column\n", told)
        broken, empty = (os.path.join(self.directory.name, name) for name in ("broken.csv.gz", "empty.csv"))
        with open(broken, "wb") as file:
            file.write(gzip.compress(body)[:-50])
        with open(empty, "wb") as file:
            file.write(b"x,k\n")
        for arguments, words in [((train, broken), broken), ((train, empty), f"{empty}: the table has no rows"),
                                 ((empty, train), f"{empty}: "), ((train, "none.csv"), "none.csv"), (("-", "-"), "standard input"), ((train, page), "does not end with"),
                                 ((train, same, "--set", "window=1h"), "without windows")]:
            self.assertIn(words, run(*arguments, status=1))
        self.assertIn("0 of 2", run(train, same, KLDIV_SERVER="", PATH="/nowhere"))  # the wheel has the program
        self.assertIn("does not start", run(train, same, status=1, KLDIV_SERVER="/bin/false"))
        for arguments in (train,), (train, same, same), (train, same, "--no"):
            self.assertIn("usage: ", run(*arguments, status=64))

    def test_an_end_by_a_signal_leaves_nothing(self):
        fifo, temporary = os.path.join(self.directory.name, "fifo"), os.path.join(self.directory.name, "temporary, with a comma")
        os.mkdir(temporary)
        script = ("import os, sys, time\nimport kldiv._local as local\nwith local.LocalService(1000):\n"
                  f"    open({fifo!r}, 'w').write('x')\n    time.sleep(60)\n")
        os.mkfifo(fifo)
        for number in signal.SIGTERM, signal.SIGINT:
            command = [sys.executable, "-c", f"import sys\nfrom kldiv import __main__\n__main__.run = lambda _: exec({script!r})\n"
                       "sys.exit(__main__.main(['a.csv', 'b.csv']))"]
            with subprocess.Popen(command, env={**os.environ, "TMPDIR": temporary},  # shells have what they put behind ignore SIGINT
                                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
                with open(fifo, encoding="ascii") as file:
                    file.read()
                begin = time.monotonic()
                process.send_signal(number)
                self.assertIn(process.wait(20), (130, 143))
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(os.listdir(temporary), [])

    def test_two_tables_in_memory(self):
        x = np.arange(1000) % 10 / 4
        results = kldiv.compare({"x": x, "k": ["a", "b"] * 500}, {"x": x + 1, "k": ["a", "b"] * 500}, critical=0.05)
        self.assertEqual([(each.name, each.verdict) for each in results.worst_first()], [("x", "critical"), ("k", "ok")])
        self.assertEqual(results, kldiv.Client(self.server.url).compare({"x": x, "k": ["a", "b"] * 500},
                                                                        iter([{"x": x + 1, "k": ["a", "b"] * 500}]), critical=0.05))

    def test_asyncio(self):
        async def day():
            async with kldiv.AsyncClient(self.server.url) as client:
                group = client.group("asyncio")
                await group.reference(self.path("train"), pool=1)  # whichever comes first
                results = await asyncio.gather(*(group.observe(self.path(name)) for name in ("same", "shifted")))
                await group.settings(retention_days=7)
                return results, await group.windows("x"), await group.summary(), await group.events()

        results, windows, summary, _ = asyncio.run(day())
        self.assertEqual([r["x"].verdict for r in results], ["ok", "critical"])
        self.assertEqual((len(windows), summary["group"]), (2, "asyncio"))


if __name__ == "__main__":
    unittest.main()
