"""Runs the blocks of a page in a folder of its own, as they are pasted: those of a language together, against a server at
another address. Each but R's, whose promises pasted.R compares, must print the loss. Blocks of the packages are run by
`make python` and `make contract`.

usage: pasted.py http://HOST:PORT PAGE LANGUAGE..."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ADDRESS, LOSS = "127.0.0.1:8080", "0.247258"
LANGUAGES = {  # file, command
    "c": ("loss.c", "cc loss.c -o loss -lcurl && ./loss"),
    "go": ("loss.go", "GOCACHE=$PWD/cache GOPATH=$PWD/go go run loss.go"),
    "java": ("Loss.java", "java Loss.java"),
    "r": ("loss.R", f"LC_ALL=C.UTF-8 Rscript {HERE}/pasted.R loss.R plots.pdf"),
    "rust": ("loss.rs", "rustc loss.rs && ./loss"),
    "sh": ("loss.sh", "sh -e loss.sh"),
}


def run(language, code, folder):
    file, command = LANGUAGES[language]
    with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
        out.write(code)
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0 or language != "r" and LOSS not in done.stdout:
        sys.exit(f"{language} ended with {done.returncode}: {done.stdout}{done.stderr}")


def main(url, page, *languages):
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    for language in languages:
        code = "".join(code for name, code in blocks if name == language)
        with tempfile.TemporaryDirectory() as folder:
            run(language, code.replace(ADDRESS, url.split("//")[1]), folder)
        print(f"{page}: {language} does what it says")


main(*sys.argv[1:])
