"""kldiv: which columns of a table have drifted, and why.

Two files, without a service:
    python -m kldiv last.csv this.csv --html report.html

A service (kldivd), which keeps references and history:
    python -m kldiv reference fraud train.parquet --set window=1h
    python -m kldiv observe fraud today.csv --timestamp 2026-01-31T00:00:00Z
    python -m kldiv evaluate fraud today.csv
    zcat today.csv.gz | python -m kldiv --json evaluate fraud -
    python -m kldiv watch fraud

Exit status: 2 if two files differ by a warning or more; of a service, if a monitor is critical (observe and watch --once:
its state; evaluate: the verdict). 0 if not. 1 after an error. 64 if the command is not one of these."""
from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import time
import warnings
import zlib
from typing import Any, NoReturn, Sequence

from ._report import printable
from ._version import __version__
from .client import Client
from .comparison import compare_tables
from .errors import ServiceError
from .group import Group
from .results import Results, Summary
from .sources import SUFFIXES

DRIFT, USAGE = 2, 64
COMMANDS = ("compare", "reference", "observe", "evaluate", "watch")
FILES = ".csv, .tsv, .txt, .jsonl, each also with .gz, .npz, .parquet, or a folder of these; - is standard input"
WITH_VALUES = ("--url", "--token", "--ca-file", "--html", "--encoding", "--set")


class Parser(argparse.ArgumentParser):
    """argparse's own status of a wrong command is that of drift here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    shared = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--url", help="of the service, or unix:PATH; default KLDIV_URL, or http://127.0.0.1:8080; two files: none")
    shared.add_argument("--token", help="default KLDIV_TOKEN")
    shared.add_argument("--ca-file", help="the CA of an https URL")
    shared.add_argument("--json", action="store_true", help="prints JSON, a line for each answer")
    whole = Parser("kldiv", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[shared])
    whole.add_argument("--version", action="version", version=f"kldiv {__version__}")
    commands = whole.add_subparsers(dest="command", required=True)
    two = commands.add_parser("compare", parents=[shared], help="two files, column by column: the word may be left out")
    two.add_argument("reference", help=FILES)
    two.add_argument("current", help="likewise")
    two.add_argument("--html", metavar="FILE", help="also writes a page, one file")
    for name, what in (("reference", "a monitor for each column of a table"), ("observe", "adds a table"),
                       ("evaluate", "scores a table, stores nothing")):
        command = commands.add_parser(name, help=what, parents=[shared])
        command.add_argument("group")
        command.add_argument("path", help=FILES)
        if name == "observe":
            command.add_argument("--timestamp", help="RFC 3339, or seconds since 1970; default now")
            command.add_argument("--time", metavar="COLUMN", help="each row goes to the window of its own time")
            command.add_argument("--timezone", metavar="ZONE", help="of times in that column that have none")
            command.add_argument("--by", metavar="COLUMN", help="rows also go to the segments of their values, as of `reference --set by=COLUMN`")
            command.add_argument("--again", action="store_true", help="counts the same content again")
    for name in ("compare", "reference", "observe", "evaluate"):
        commands.choices[name].add_argument("--encoding", help="of CSV or JSON Lines, as Python names it: cp1252, utf-16; "
                                            "default utf-8")
    for name in ("compare", "reference"):
        commands.choices[name].add_argument("--set", action="append", default=[], metavar="SETTING=VALUE",
                                            help="as the API has them: critical=0.2, include=age,country, window=1h")
    watch = commands.add_parser("watch", parents=[shared], help="prints what drifts, whenever that changes")
    watch.add_argument("group")
    watch.add_argument("--every", type=float, default=10.0, metavar="SECONDS")
    watch.add_argument("--once", action="store_true")
    return whole


def settings(pairs: Sequence[str]) -> dict[str, Any]:
    split = [pair.partition("=") for pair in pairs]
    bad = [pair for pair, (_, equals, _) in zip(pairs, split) if not equals]
    if bad:
        raise ValueError(f"--set {bad[0]}: SETTING=VALUE is expected")
    return {name: value for name, _, value in split}


def print_results(results: Results, as_json: bool) -> int:
    print(json.dumps({"monitors": results, "warnings": results.warnings, "replayed": results.replayed})
          if as_json else results)
    return DRIFT if any(result.state == "critical" for result in results) else 0


def summary_text(summary: Summary) -> str:
    lines = [f"{summary['group']}: {summary['state']}, {len(summary['drifting'])} of {summary['monitors']} monitors drift{'s' if len(summary['drifting']) == 1 else ''}"]
    lines += [f"  {text}" for text in summary.incidents()]
    for each in summary["drifting"]:
        kl = "infinite" if each["kl"] is None else f"{each['kl']:.3g} nats"
        lines.append(f"  {each['state']:8} {each['name']}: KL {kl} since {each['since']}: {', '.join(each['top'])}")
    return "\n".join(lines)


def watch(group: Group, every: float, once: bool, as_json: bool) -> int:
    last = ""
    while True:
        summary = group.summary()
        text = summary_text(summary)
        if text != last:
            print(json.dumps(summary) if as_json else f"{time.strftime('%H:%M:%S')} {text}", flush=True)
            last = text
        if once:
            return DRIFT if summary["state"] == "critical" else 0
        time.sleep(every)


def first_word(argv: Sequence[str]) -> str:
    """The first argument that is neither an option nor its value."""
    words = iter(argv)
    for word in words:
        if word in WITH_VALUES:
            next(words, None)
        elif word == "-" or not word.startswith("-"):
            return word
    return ""


def with_command(argv: Sequence[str]) -> list[str]:
    """The arguments; those that begin with a file are of compare."""
    first = first_word(argv)
    is_file = first not in COMMANDS and (first == "-" or first.lower().endswith(SUFFIXES) or os.path.exists(first or "/nothing"))
    return ["compare", *argv] if is_file else list(argv)


def compare(arguments: argparse.Namespace) -> int:
    files = [sys.stdin if path == "-" else path for path in (arguments.reference, arguments.current)]
    if files[0] is files[1]:
        raise ValueError("standard input can be one of the files")
    transport = service_of(arguments).transport if hasattr(arguments, "url") else None
    try:
        results = compare_tables(transport, files[0], files[1], arguments.encoding, settings(arguments.set))
    except ServiceError as error:
        for part in "reference", "current":  # which the service names
            error.args = (error.args[0].replace(f"{part}: ", f"{getattr(arguments, part)}: ", 1), *error.args[1:])
        raise
    title = f"{arguments.reference} → {arguments.current}"
    if arguments.html:
        results.save_html(arguments.html, title)
    if getattr(arguments, "json", False):
        print(json.dumps({"columns": results.worst_first(), "warnings": results.warnings}))
    else:
        print(f"{printable(title)}: {results}", *map(printable, results.notes()), sep="\n")
    return DRIFT if results.drifting else 0


def service_of(arguments: argparse.Namespace) -> Client:
    url = getattr(arguments, "url", os.environ.get("KLDIV_URL", "http://127.0.0.1:8080"))
    token = getattr(arguments, "token", os.environ.get("KLDIV_TOKEN"))
    return Client(url, token, ca_file=getattr(arguments, "ca_file", None))


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "compare":
        return compare(arguments)
    as_json = getattr(arguments, "json", False)
    group = service_of(arguments).group(arguments.group)
    if arguments.command == "watch":
        return watch(group, arguments.every, arguments.once, as_json)
    data = sys.stdin if arguments.path == "-" else arguments.path
    if arguments.command == "reference":
        monitors = group.reference(data, encoding=arguments.encoding, **settings(arguments.set))
        print(json.dumps(monitors) if as_json else
              f"{len(monitors)} monitors: {', '.join(config['name'] for config in monitors)}")
        return 0
    if arguments.command == "observe":
        results = group.observe(data, arguments.timestamp, time=arguments.time, timezone=arguments.timezone, by=arguments.by,
                                key=None if arguments.again else "content", encoding=arguments.encoding)
        return print_results(with_segments(results), as_json)
    return print_results(group.evaluate(data, encoding=arguments.encoding), as_json)


def with_segments(results: Results) -> Results:
    """The results, and those of segments by names such as "amount [country=DE]"."""
    own = [{**each, "name": f"{each.name} [{group.split('[', 1)[1]}"} for group, all_of_it in results.segments.items() for each in all_of_it]
    return Results([*results, *own], results.warnings, results.replayed, results.windows)


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(with_command(sys.argv[1:] if argv is None else argv))
    warnings.showwarning = show_warning
    for stream in sys.stdout, sys.stderr:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return run(arguments)
    except (ServiceError, OSError, ValueError, TypeError, ImportError, EOFError, zlib.error) as error:
        print(f"kldiv: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
