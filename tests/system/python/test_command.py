"""python -m kldiv; and the monitors of asyncio."""
import asyncio
import gzip
import json
import os
import subprocess
import sys
import tempfile
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
        self.assertRegex(self.run_command("observe", "shell", self.path("same")), "x: ok, 500 values; KL .*\nk: ok")
        self.assertIn("0 of 2 monitors drift", self.run_command("watch", "shell", "--once"))
        self.assertIn("x: critical", self.run_command("evaluate", "shell", self.path("shifted"), status=2))
        self.assertIn("x: critical", self.run_command("observe", "shell", self.path("shifted"), status=2))
        self.run_command("observe", "shell", self.path("shifted"), status=2)
        self.assertEqual(len(kldiv.Client(self.server.url).group("shell").windows("x")), 2)
        self.run_command("observe", "shell", self.path("shifted"), "--again", status=2)
        self.assertEqual(len(kldiv.Client(self.server.url).group("shell").windows("x")), 3)
        self.assertRegex(self.run_command("watch", "shell", "--once", status=2), "1 of 2 monitors drift\n  critical x: KL")

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
        self.assertIn("exit status is 2", self.run_command("--help"))

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
                ("jsonl", lines, "utf-8"), ("ndjson", lines, "latin-1"), ("csv", russian, "cp1251")]:
            body, arguments = content.encode(encoding), ["--encoding", encoding] if encoding != "utf-8" else []
            path = os.path.join(self.directory.name, f"kinds.{suffix}")
            with open(path, "wb") as file:
                file.write(body)
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(body)
            for each in path, f"{path}.gz", *(["-"] if suffix in ("csv", "txt") else []):
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
