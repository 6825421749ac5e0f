"""Runs the programs of this folder, and the blocks of pages about clients as they are pasted (those of a language together,
in a folder of their own), against a server; then against servers that refuse, as answers.py has them, and none. Each prints
the loss; R's blocks print what their page says, by pasted.R. The package of R goes through R CMD check, whose tests call the
server. Blocks of the other packages are run by `make python` and `make contract`.

usage: run.py KLDIVD PACKAGE_OF_R"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "journey"), os.path.join(HERE, "..", "..", "tools")]
from answers import Answers
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
LANGUAGES = {  # file, command that compiles it, command that runs it, what that prints
    "c": ("loss.c", "cc loss.c -o loss -lcurl", "./loss", LOSS),
    "go": ("loss.go", "GOCACHE=$PWD/cache GOPATH=$PWD/go go build -o loss loss.go", "./loss", LOSS),
    "java": ("Loss.java", "javac Loss.java", "java -XX:TieredStopAtLevel=1 Loss", LOSS),
    "r": ("loss.R", "", f"LC_ALL=C.UTF-8 Rscript {shlex.quote(HERE)}/pasted.R loss.R plots.pdf", []),
    "rust": ("loss.rs", "rustc loss.rs", "./loss", LOSS),
    "sh": ("loss.sh", "", "sh -e loss.sh", LOSS),
}
REFUSALS = {  # cases of answers.py, and what standard error has; None: there is no server
    "refused": "input has shape [2, 2] but target has shape [2]",
    "busy": "the memory is used up for now",
    "gateway": "502",
    "timeout": "upstream timed out",
    None: "",
}
TELL_REFUSALS = {"curl.sh", "libcurl.c"}  # programs that, as all blocks but R's, write the sentence and end with 1


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


def refuse(name, command, folder, sentence):
    """Expects a command to end with 1, to print no loss, and to tell why on standard error."""
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    is_told = sentence in done.stderr and done.stderr.strip()
    if done.returncode != 1 or not is_told or re.search(r"\b0\.\d|^0$", done.stdout, re.M):
        sys.exit(f"{name}, refused by '{sentence}', ended with {done.returncode}: {done.stdout}\nstderr: {done.stderr}")


def refuse_all(name, command, folder, answers):
    for answers.server.case in filter(None, REFUSALS):
        refuse(name, command, folder, REFUSALS[answers.server.case])


def programs(server):
    for name, (command, expected) in PROGRAMS.items():
        def command_for(url):
            return command.format(file=shlex.quote(os.path.join(HERE, name)), url=url, socket=shlex.quote(server.socket))
        with tempfile.TemporaryDirectory() as folder:
            run(name, command_for(server.url), folder, expected)
            if name in TELL_REFUSALS:
                with Answers() as answers:
                    refuse_all(name, command_for(answers.url), folder, answers)
                refuse(name, command_for(answers.url), folder, REFUSALS[None])
    print(f"{len(PROGRAMS)} programs print losses and verdicts; {len(TELL_REFUSALS)} tell what is wrong")


def page_blocks(page, language, server):
    """What is compiled is built once, for an address where the service is, then refusals, then nothing."""
    file, build, command, expected = LANGUAGES[language]
    code = "".join(blocks(text_of(page), language))
    if not code:
        sys.exit(f"{page} has nothing in {language}")
    name, tells_refusals = f"{page}: {language}", language != "r"  # the package of R has tests of its own
    with tempfile.TemporaryDirectory() as folder:
        with Answers(server.url.split("//")[1]) as answers:
            def write_for(url):
                with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                    out.write(code.replace(ADDRESS.split("//")[1], url.split("//")[1]))

            write_for(answers.url if build else server.url)
            run(name, build, folder, [])
            answers.server.case = "forward"
            run(name, command, folder, expected)
            write_for(answers.url)
            if tells_refusals:
                refuse_all(name, command, folder, answers)
        if tells_refusals:
            refuse(name, command, folder, REFUSALS[None])
    print(f"{name} does what it says")


def check_r(package, folder, server):
    """R CMD check of the package, whose tests call the server. What it would ask CRAN for is here: nothing."""
    cran = os.path.join(folder, "cran")
    os.makedirs(os.path.join(cran, "src", "contrib"))
    os.makedirs(os.path.join(cran, "web", "packages"))
    open(os.path.join(cran, "src", "contrib", "PACKAGES"), "w").close()
    with open(os.path.join(cran, "profile"), "w") as out:
        out.write(f'options(repos = c(CRAN = "file://{cran}"))\n')
    with Answers() as answers:
        environment = {**os.environ, "KLDIV_URL": server.url, "KLDIV_ANSWERS_URL": answers.url, "NOT_CRAN": "true",
                       "R_PROFILE": os.path.join(cran, "profile"), "R_CRAN_WEB": f"file://{cran}", "LC_ALL": "C.UTF-8",
                       "_R_CHECK_CRAN_INCOMING_REMOTE_": "false", "_R_CHECK_FORCE_SUGGESTS_": "false"}
        index = f'fields <- c("Package", "Version", "Depends", "Imports", "LinkingTo", "Suggests", "Enhances", "License", ' \
                f'"Maintainer"); saveRDS(as.data.frame(installed.packages(fields = fields)[, fields]), "{cran}/web/packages/packages.rds")'
        subprocess.run(["Rscript", "-e", index], check=True, env=environment)
        done = subprocess.run(["R", "CMD", "check", "--as-cran", "--no-manual", "--run-dontrun", package], cwd=folder, env=environment,
                              capture_output=True, text=True)
    said = "".join(open(name, encoding="utf-8").read() for name in glob.glob(f"{folder}/kldiv.Rcheck/tests/testthat.Rout*"))
    result = re.search(r"FAIL (\d+) \| WARN (\d+) \| SKIP (\d+) \| PASS (\d+)", said)
    skipped = re.findall(r"^• (.*)", said, re.M)
    if done.returncode or re.search(r"ERROR|WARNING", done.stdout) or not result or result[1] != "0" or result[2] != "0" or \
            skipped not in ([], ["torch cannot be loaded (1)"]):
        sys.exit(f"R CMD check: {done.stdout}{done.stderr}{said}")
    print(f"the package of R: R CMD check --as-cran --no-manual --run-dontrun finds no error, no warning; {result[4]} expectations hold")
    for reason in skipped:
        print(f"NOT RUN: a test of the package of R: {reason}")


def main(binary, package):
    for name in PROGRAMS:
        if f"({name})" not in text_of("tests/system/clients/README.md"):
            sys.exit(f"the page of these programs does not list {name}")
    with Server(binary, "--shared-memory", "kldiv_example_") as server, tempfile.TemporaryDirectory() as checked:
        programs(server)
        check_r(os.path.abspath(package), checked, server)
        os.environ["R_LIBS"] = os.path.join(checked, "kldiv.Rcheck")
        for page, languages in PAGES.items():
            for language in languages:
                page_blocks(page, language, server)


main(*sys.argv[1:])
