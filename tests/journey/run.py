"""Runs the READMEs' commands about monitors against a server, and holds what they print against what is
printed there. Then does the journey of README.md with every column of four data sets of scikit-learn
(copies of public ones, made at run time): the shifted column must be critical, all others quiet.

usage: run.py KLDIVD"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ADDRESS = "http://127.0.0.1:8080"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


class Server:
    """A server on a free port, with its store in a file."""

    def __init__(self, binary, folder):
        port = os.path.join(folder, "port")
        self.process = subprocess.Popen(
            [os.path.abspath(binary), "--listen", "127.0.0.1:0", "--port-file", port,
             "--store", "sqlite:" + os.path.join(folder, "kldiv.db"), "--log-level", "warning"])
        for _ in range(200):
            if os.path.exists(port) and open(port).read().strip():
                break
            time.sleep(0.05)
        self.url = "http://127.0.0.1:" + open(port).read().strip()

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def commands(path):
    """Yields (command, lines printed) of the parts of a README between the journey's marks."""
    inside, command, printed, end = False, None, [], None
    for line in open(os.path.join(ROOT, path), encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("<!-- journey "):
            inside = "begins" in line
        text = line[4:] if inside and line.startswith("    ") else None
        if end and (text is not None or not line):
            command += "\n" + (text or "")
            end = None if text == end else end
        elif text is not None and text.startswith("$ "):
            if command:
                yield command, printed
            command, printed = text[2:], []
            end = "END" if command.endswith("<<'END'") else None
        elif text is not None and command:
            printed.append(text)
        elif command:
            yield command, printed
            command = None
    if command:
        yield command, printed


def run(command, url, folder):
    command = command.replace(ADDRESS, url)
    if command.startswith("python3 "):
        command = sys.executable + command[len("python3"):]
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"{command}\nended with {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()


def alike(ours, theirs):
    """True if lines are equal but for the last digits of their numbers."""
    a, b = NUMBER.findall(ours), NUMBER.findall(theirs)
    return NUMBER.sub("#", ours) == NUMBER.sub("#", theirs) and all(
        math.isclose(float(x), float(y), rel_tol=1e-10, abs_tol=1e-14) for x, y in zip(a, b))


def run_readme(path, url, folder):
    n = 0
    for command, printed in commands(path):
        ours = run(command, url, folder)
        if len(ours) != len(printed) or not all(map(alike, ours, printed)):
            sys.exit(f"{path}: {command}\nprints\n" + "\n".join(ours) + "\nand not\n" +
                     "\n".join(printed))
        n += 1
    print(f"{path}: {n} commands print what it says")
    return n


DATA_SETS = ("iris", "wine", "diabetes", "breast_cancer")


def travel(name, url, folder):
    """The three commands of README.md about wine with another data set, once for each of its columns."""
    all_commands = [command for command, _ in commands("README.md")]
    first = next(i for i, command in enumerate(all_commands) if command.startswith("python3 "))
    make, put, post = all_commands[first:first + 3]
    put, post = [c.split(" | ")[0].replace("/monitors/wine", "/monitors/" + name) for c in (put, post)]
    make = make.replace("load_wine", "load_" + name)
    columns = None
    column = 0
    while columns is None or column < len(columns):
        run(make.replace("[:, 0]", f"[:, {column}]"), url, folder)
        if columns:  # tables of before are not pooled with this one
            urllib.request.urlopen(urllib.request.Request(f"{url}/monitors/{name}", method="DELETE"))
        columns = json.loads("\n".join(run(put, url, folder)))["monitors"]
        results = json.loads("\n".join(run(post, url, folder)))["monitors"]
        for i, result in enumerate(results):
            right = result["verdict"] == "critical" if i == column else result["verdict"] == "ok"
            if not right:
                sys.exit(f"{name}: with column {column} shifted, {result['name']} is "
                         f"{result['verdict']}: {json.dumps(result)}")
        listed = json.load(urllib.request.urlopen(f"{url}/monitors?group={name}&limit=1"))
        assert listed["monitors"][0]["name"] == columns[column]["name"], listed
        column += 1
    print(f"{name}: each of {column} columns in turn is critical, all others ok")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(sys.argv[1], folder)
        try:
            assert run_readme("README.md", server.url, folder) >= 5
            run_readme("api/README.md", server.url, folder)
            for name in DATA_SETS:
                travel(name, server.url, folder)
        finally:
            status = server.stop()
        if status != 0:
            sys.exit(f"the server ended with {status}")


main()
