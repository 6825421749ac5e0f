"""Circles of files and of folders within lib, api and server: by their includes, and by the symbols that their objects
need. Folders of more than 35 sources.

A unit is a source file with the header of its name. One unit needs another if it includes its header, or if its
object has an undefined symbol that the other's object defines. A folder needs another if one of its units needs one of
the other's; the library's public headers lie below all folders. Prints what is wrong and exits with 1 if anything is.

Usage: tests/tools/lint/circles.py build/release
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOMS = ("lib", "api", "server")
PUBLIC = ("lib/kldiv", "lib/drift")  # headers
MAX_SOURCES = 35  # of a folder


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
    sources = {path: unit(path.relative_to(objects)) for room in ROOMS for path in (objects / room).rglob("*.o")}
    paths = [path for path, name in sources.items() if pathlib.Path(name + ".c").exists()]  # the others are of sources that are gone
    lines = subprocess.run(["nm", "-gA", *paths], capture_output=True, text=True, check=True).stdout.splitlines()
    defined, undefined = {}, {}
    for path, rest in (line.split(":", 1) for line in lines):
        kind, symbol = rest.split()[-2:]
        name = sources[pathlib.Path(path)]
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


def folder(name):
    return name.rpartition("/")[0]


def of_folders(needs):
    """{folder: folders that its units need}"""
    found = {}
    for name, others in needs.items():
        found.setdefault(folder(name), set()).update(folder(other) for other in others)
    return found


def large_folders():
    count = collections.Counter(folder(str(path)) for room in ROOMS for path in pathlib.Path(room).rglob("*.[ch]"))
    return {name: n for name, n in count.items() if n > MAX_SOURCES}


def tell(how, circle, needs, units):
    """Prints what closes a circle; of folders, with the units' needs."""
    print(f"circle by {how}: {', '.join(circle)}", file=sys.stderr)
    for name in circle:
        for other in sorted(needs[name] & set(circle) - {name}):
            causes = [f"{a} needs {b}" for a, others in sorted(units.items()) for b in sorted(others)
                      if folder(a) == name and folder(b) == other]
            print(f"    {name} needs {other}: {'; '.join(causes[:4])}", file=sys.stderr)


def main():
    sys.setrecursionlimit(10_000)
    bad = False
    for how, needs in (("includes", includes()), ("symbols", symbols(pathlib.Path(sys.argv[1])))):
        needs = {name: others - set(PUBLIC) for name, others in needs.items()} if how == "includes" else needs
        for of, graph in (("files", needs), ("folders", of_folders(needs))):
            for circle in circles(graph):
                bad = True
                tell(f"{how} of {of}", circle, graph, needs)
    for name, n in large_folders().items():
        bad = True
        print(f"{name} has {n} sources, more than {MAX_SOURCES}", file=sys.stderr)
    return bad


sys.exit(main())
