"""Runs the commands of the READMEs against a server, and holds what they print against what is printed there. Then does
the journey of api/monitors/README.md with every column of four data sets of scikit-learn (copies of public ones, made at run time):
the shifted column must be critical, all others quiet. What needs a module of Python that is missing is not run, and
told; with --all that is an error.

usage: run.py [--all] KLDIVD"""
import contextlib
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from documents import ADDRESS, commands
from service import Server

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
QUIET_CURL = 'curl() { command curl -sS "$@"; }\n'  # nobody looks at its progress
SOCKET, SETTINGS = "/run/kldiv.sock", "/etc/kldiv"  # as the pages say
# The tokens of the operator's manual, and the table of the group that it is about.
AUTH = "Authorization: Bearer 0123456789abcdef"
TOKENS = "ops read,write 0123456789abcdef\nfeeder observe fedcba9876543210\n"
CREDIT = {"columns": {"age": list(range(20, 80)), "email": ["a@example.org", "b@example.org"] * 30}}


def run(command, server, folder):
    command = command.replace(ADDRESS, server.url).replace(SOCKET, server.socket).replace(SETTINGS, folder)
    if command.startswith("python3 "):
        command = sys.executable + command[len("python3"):]
    done = subprocess.run(["sh", "-c", QUIET_CURL + command], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "AUTH": AUTH, "PID": str(server.process.pid)})
    if done.returncode != 0 or done.stderr:
        sys.exit(f"{command}\nended with {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()


def missing_module(command):
    """A module that a script of Python imports and that is not installed, or None."""
    modules = re.findall(r"^(?:import|from) (\w+)", command, re.M) if command.startswith("python3 ") else []
    return next((module for module in modules if not importlib.util.find_spec(module)), None)


def alike(command, ours, theirs):
    """True if the lines are equal: those of a loss to the bit, those of monitors but for the last digits of their numbers."""
    if "/monitors" not in command:
        return ours == theirs
    a, b = NUMBER.findall(ours), NUMBER.findall(theirs)
    return NUMBER.sub("#", ours) == NUMBER.sub("#", theirs) and all(
        math.isclose(float(x), float(y), rel_tol=1e-10, abs_tol=1e-14) for x, y in zip(a, b))


def run_page(page, least, server, folder):
    """Runs the commands of a page, of which there are at least so many. Returns the modules that were missing."""
    n, left_out, missing = 0, 0, {}
    for journey, command, printed in commands(page):
        module = missing_module(command)
        if module:
            missing[journey] = module
        if journey in missing:
            left_out += 1
            continue
        ours = run(command, server, folder)
        if len(ours) != len(printed) or not all(alike(command, *pair) for pair in zip(ours, printed)):
            sys.exit(f"{page}: {command}\nprints\n" + "\n".join(ours) + "\nand not\n" + "\n".join(printed))
        n += 1
    if n + left_out < least:
        sys.exit(f"{page} has {n + left_out} commands")
    print(f"{page}: {n} commands print what it says")
    if missing:
        print(f"NOT RUN: {left_out} commands of {page}: python3-{', python3-'.join(sorted(set(missing.values())))} is missing")
    return set(missing.values())


def operate(binary, folder):
    """The commands of the operator's manual, with a server that wants tokens."""
    with open(os.path.join(folder, "tokens"), "w") as file:
        file.write(TOKENS)
    with Server(binary, "--auth-token-file", file.name) as server:
        run(f"curl -T - -H \"$AUTH\" -o /dev/null {ADDRESS}/monitors/credit <<'END'\n{json.dumps(CREDIT)}\nEND", server, folder)
        return run_page("docker/README.md", 8, server, folder)


# Pages, and how many commands each has at least.
PAGES = (("README.md", 6), ("api/README.md", 4), ("api/loss/README.md", 8), ("api/monitors/README.md", 9),
         ("api/monitors/tables.md", 6), ("api/monitors/time.md", 4), ("api/monitors/segments.md", 3),
         ("api/monitors/paths.md", 2),  # about a group of api/monitors/README.md
         ("api/monitors/checks.md", 9), ("server/README.md", 1), ("server/local.md", 1))
DATA_SETS = ("iris", "wine", "diabetes", "breast_cancer")


def travel(name, server, folder):
    """The three commands of api/monitors/README.md about wine with another data set, once for each of its columns."""
    url = server.url
    all_commands = [command for _, command, _ in commands("api/monitors/README.md")]
    first = next(i for i, command in enumerate(all_commands) if "load_wine" in command)
    make, put, post = all_commands[first:first + 3]
    put, post = [c.split(" | ")[0].replace("/monitors/wine", "/monitors/" + name) for c in (put, post)]
    make = make.replace("load_wine", "load_" + name)
    script = make.split("\n", 1)[1].removesuffix("\nEND")
    columns = None
    column = 0
    while columns is None or column < len(columns):
        with contextlib.chdir(folder):
            exec(script.replace("[:, 0]", f"[:, {column}]"), {})
        if columns:  # tables of before are not pooled with this one
            urllib.request.urlopen(urllib.request.Request(f"{url}/monitors/{name}", method="DELETE"))
        columns = json.loads("\n".join(run(put, server, folder)))["monitors"]
        results = json.loads("\n".join(run(post, server, folder)))["monitors"]
        for i, result in enumerate(results):
            right = result["verdict"] == "critical" if i == column else result["verdict"] == "ok"
            if not right:
                sys.exit(f"{name}: with column {column} shifted, {result['name']} is "
                         f"{result['verdict']}: {json.dumps(result)}")
        listed = json.load(urllib.request.urlopen(f"{url}/monitors?group={name}&limit=1"))
        assert listed["monitors"][0]["name"] == columns[column]["name"], listed
        column += 1
    print(f"{name}: each of {column} columns in turn is critical, all others ok")


def main(binary, must_be_whole):
    missing = set()
    with tempfile.TemporaryDirectory() as folder, Server(binary) as server:
        for page, least in PAGES:
            missing |= run_page(page, least, server, folder)
        operate(binary, folder)
        for name in () if missing else DATA_SETS:
            travel(name, server, folder)
    if missing:
        print(f"NOT RUN: the journey of api/monitors/README.md with {len(DATA_SETS)} data sets")
        if must_be_whole:
            sys.exit(1)


main(sys.argv[-1], "--all" in sys.argv[1:-1])
