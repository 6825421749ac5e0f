"""Reads the commands and the blocks of the project's pages, for the tests that run them.

usage: documents.py PAGE LANGUAGE FILE-%d   writes the blocks of a language to files, numbered from 1"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ADDRESS = "http://127.0.0.1:8080"  # the server's, in all pages


def text_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def section(page, heading):
    """The text below a heading, up to the next one of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    below = text_of(page).split(f"\n{heading}\n")[1]
    return re.split(rf"^#{{1,{level}}} ", below, maxsplit=1, flags=re.M)[0]


def blocks(text, language):
    """The fenced blocks of a language."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", text, re.M | re.S)


def indented_blocks(text):
    return re.findall(r"(?:^    .*\n)+", text, re.M)


def commands(page):
    """(journey, command, printed lines) of each line that begins with a $: indented, also over several lines up to an END.
    Commands between the marks of a journey need those before them. Those below `<!-- two files -->` need the package of Python:
    tests/system/python runs them."""
    found, journey, end, printed, elsewhere = [], 0, None, None, False
    for line in text_of(page).splitlines():
        elsewhere = line == "<!-- two files -->" or (elsewhere and (not line or line.startswith("    ")))
        if elsewhere:
            continue
        text = line[4:] if line.startswith("    ") else None
        journey += line.startswith("<!-- journey ")
        if end and (text is not None or not line):
            found[-1][1] += "\n" + (text or "")
            end = None if text == end else end
        elif text is not None and text.startswith("$ "):
            printed = []
            found.append([journey, text[2:], printed])
            end = "END" if text.endswith("<<'END'") else None
        elif text is not None and printed is not None:
            printed.append(text)
        else:
            printed = None
    return found


if __name__ == "__main__":
    for number, block in enumerate(blocks(text_of(sys.argv[1]), sys.argv[2]), 1):
        with open(sys.argv[3] % number, "w", encoding="utf-8") as out:
            out.write(block)
