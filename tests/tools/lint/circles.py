"""Circles of files within lib, api and server: by their includes, and by the symbols that their objects need.

A unit is a source file with the header of its name. One unit needs another if it includes its header, or if its
object has an undefined symbol that the other's object defines. Prints each circle and exits with 1 if there is one.

Usage: tests/tools/lint/circles.py build/release
"""

import pathlib
import re
import subprocess
import sys

ROOMS = ("lib", "api", "server")


def unit(path):
    return str(path).rsplit(".", 1)[0]


def includes():
    """{unit: units whose header it includes}"""
    needs = {}
    for room in ROOMS:
        for path in pathlib.Path(room).rglob("*.[ch]"):
            found = re.findall(r'#include "([^"]+)"', path.read_text())
            needs.setdefault(unit(path), set()).update(unit(name) for name in found)
    return needs


def symbols(objects):
    """{unit: units whose object defines a symbol that it needs}"""
    defined, undefined = {}, {}
    for room in ROOMS:
        for path in (objects / room).rglob("*.o"):
            name = unit(path.relative_to(objects))
            if not pathlib.Path(name + ".c").exists():  # an object of a source that is gone
                continue
            lines = subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True).stdout.splitlines()
            for kind, symbol in (line.split()[-2:] for line in lines):
                if kind == "U":
                    undefined.setdefault(name, set()).add(symbol)
                else:
                    defined[symbol] = name
    return {name: {defined[s] for s in wanted if s in defined} for name, wanted in undefined.items()}


def circles(needs):
    """Strongly connected components of more than one unit, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(needs.get(name, ())):
            if other == name:
                continue
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            members = stack[stack.index(name):]
            del stack[stack.index(name):]
            if len(members) > 1:
                found.append(sorted(members))

    for name in sorted(needs):
        if name not in index:
            visit(name)
    return found


def main():
    sys.setrecursionlimit(10_000)
    bad = False
    for how, needs in (("includes", includes()), ("symbols", symbols(pathlib.Path(sys.argv[1])))):
        for circle in circles(needs):
            bad = True
            print(f"circle by {how}: {', '.join(circle)}", file=sys.stderr)
            for name in circle:
                print(f"    {name} needs {', '.join(sorted(needs[name] & set(circle) - {name}))}", file=sys.stderr)
    return bad


sys.exit(main())
