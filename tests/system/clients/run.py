"""Runs the programs of this folder, and the blocks of pages about clients as they are pasted (those of a language together,
in a folder of their own), against a server. Each prints the loss; R's blocks print what their page says, by pasted.R.
Blocks of the packages are run by `make python` and `make contract`.

usage: run.py KLDIVD"""
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "journey"), os.path.join(HERE, "..", "..", "tools")]
from documents import ADDRESS, blocks, text_of
from service import Server

LOSS = ["0.247258"]
PROGRAMS = {  # of a file: command, what it is given, what it prints
    "curl.sh": ("sh {file} {url}/kl_div", LOSS * 2),  # of float64, of float32
    "stdlib.py": ("python3 {file} {url}/kl_div", LOSS * 2),
    "with_numpy.py": ("/usr/bin/python3 {file} {url}/kl_div", LOSS * 2),
    "fetch.mjs": ("node {file} {url}/kl_div", LOSS * 2),
    "libcurl.c": ("cc {file} -o client -lcurl && ./client {url}/kl_div", LOSS * 2),
    "with_httr.R": ("Rscript {file} {url}/kl_div", LOSS * 2),
    "local.py": ("python3 {file} {socket}", LOSS * 2),
    "local.mjs": ("node {file} {socket}", LOSS * 2),
    "shared_memory.py": ("python3 {file} {url}/v2", LOSS * 2),
    "monitors.py": ("/usr/bin/python3 {file} {url}/monitors", ["critical"]),
    "monitors.R": ("Rscript {file} {url}/monitors", ["critical"]),
}
PAGES = {
    "api/clients/README.md": ["c", "go", "java", "r", "rust", "sh"],
    "api/clients/R/README.md": ["r"],
}
LANGUAGES = {  # file, command, what it prints
    "c": ("loss.c", "cc loss.c -o loss -lcurl && ./loss", LOSS),
    "go": ("loss.go", "GOCACHE=$PWD/cache GOPATH=$PWD/go go run loss.go", LOSS),
    "java": ("Loss.java", "java Loss.java", LOSS),
    "r": ("loss.R", f"LC_ALL=C.UTF-8 Rscript {shlex.quote(HERE)}/pasted.R loss.R plots.pdf", []),
    "rust": ("loss.rs", "rustc loss.rs && ./loss", LOSS),
    "sh": ("loss.sh", "sh -e loss.sh", LOSS),
}


def run(name, command, folder, expected):
    """Expects a command to end with 0 and to print these texts, one after another."""
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    position = 0
    for text in expected:
        position = done.stdout.find(text, position) + 1
        if not position:
            break
    if done.returncode != 0 or expected and not position:
        sys.exit(f"{name} ended with {done.returncode}: {done.stdout}{done.stderr}")


def main(binary):
    for name in PROGRAMS:
        if text_of(f"tests/system/clients/{name}") not in text_of("tests/system/clients/README.md"):
            sys.exit(f"the page of these programs has another {name}: make readme")
    with Server(binary, "--shared-memory", "kldiv_example_") as server:
        for name, (command, expected) in PROGRAMS.items():
            with tempfile.TemporaryDirectory() as folder:
                run(name, command.format(file=shlex.quote(os.path.join(HERE, name)), url=server.url, socket=shlex.quote(server.socket)), folder, expected)
        print(f"{len(PROGRAMS)} programs print losses and verdicts")
        for page, languages in PAGES.items():
            for language in languages:
                file, command, expected = LANGUAGES[language]
                code = "".join(blocks(text_of(page), language))
                if not code:
                    sys.exit(f"{page} has nothing in {language}")
                with tempfile.TemporaryDirectory() as folder:
                    with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                        out.write(code.replace(ADDRESS.split("//")[1], server.url.split("//")[1]))
                    run(f"{page}: {language}", command, folder, expected)
                print(f"{page}: {language} does what it says")


main(sys.argv[1])
