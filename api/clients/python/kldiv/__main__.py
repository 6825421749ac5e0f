"""python -m kldiv: references and observations from files, and what drifts.

    python -m kldiv reference fraud train.parquet --set window=1h
    python -m kldiv observe fraud today.csv --timestamp 2026-01-31T00:00:00Z
    python -m kldiv evaluate fraud today.csv
    zcat today.csv.gz | python -m kldiv --json evaluate fraud -
    python -m kldiv watch fraud

The exit status is 2 if a monitor is critical (observe and watch --once go by its state, evaluate by the verdict), 1 after
an error, 64 if the command is not one of these."""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from typing import Any, NoReturn, Sequence

from ._version import __version__
from .client import Client
from .errors import ServiceError
from .group import Group
from .results import Results, Summary

CRITICAL, USAGE = 2, 64


class Parser(argparse.ArgumentParser):
    """argparse's own status of a wrong command is that of drift here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    whole = Parser("kldiv", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--url", default=os.environ.get("KLDIV_URL", "http://127.0.0.1:8080"),
                       help="of the service, or unix:PATH; default KLDIV_URL, or %(default)s")
    whole.add_argument("--token", default=os.environ.get("KLDIV_TOKEN"), help="default KLDIV_TOKEN")
    whole.add_argument("--ca-file", help="the CA of an https URL")
    whole.add_argument("--json", action="store_true", help="prints JSON, a line for each answer")
    whole.add_argument("--version", action="version", version=f"kldiv {__version__}")
    commands = whole.add_subparsers(dest="command", required=True)
    for name, what in (("reference", "a monitor for each column of a table"), ("observe", "adds a table"),
                       ("evaluate", "scores a table, stores nothing")):
        command = commands.add_parser(name, help=what)
        command.add_argument("group")
        command.add_argument("path", help=".csv, .tsv, .txt, .jsonl, each also with .gz, .npz, .parquet, or a folder of these; - "
                             "is CSV on standard input")
        command.add_argument("--encoding", help="of CSV or JSON Lines, as Python names it: cp1252, utf-16; default utf-8")
        if name == "reference":
            command.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE",
                                 help="as the API has them: window=1h, critical=0.2, include=age,country")
        if name == "observe":
            command.add_argument("--timestamp", help="RFC 3339, or seconds since 1970; default now")
            command.add_argument("--time", metavar="COLUMN", help="each row goes to the window of its own time")
            command.add_argument("--timezone", metavar="ZONE", help="of times in that column that have none")
            command.add_argument("--again", action="store_true", help="counts the same content again")
    watch = commands.add_parser("watch", help="prints what drifts, whenever that changes")
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
    return CRITICAL if any(result.state == "critical" for result in results) else 0


def summary_text(summary: Summary) -> str:
    lines = [f"{summary['group']}: {summary['state']}, {len(summary['drifting'])} of {summary['monitors']} monitors drift"]
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
            return CRITICAL if summary["state"] == "critical" else 0
        time.sleep(every)


def run(arguments: argparse.Namespace) -> int:
    group = Client(arguments.url, arguments.token, ca_file=arguments.ca_file).group(arguments.group)
    if arguments.command == "watch":
        return watch(group, arguments.every, arguments.once, arguments.json)
    data = sys.stdin if arguments.path == "-" else arguments.path
    if arguments.command == "reference":
        monitors = group.reference(data, encoding=arguments.encoding, **settings(arguments.set))
        print(json.dumps(monitors) if arguments.json else
              f"{len(monitors)} monitors: {', '.join(config['name'] for config in monitors)}")
        return 0
    if arguments.command == "observe":
        return print_results(group.observe(data, arguments.timestamp, time=arguments.time, timezone=arguments.timezone,
                                           key=None if arguments.again else "content", encoding=arguments.encoding), arguments.json)
    return print_results(group.evaluate(data, encoding=arguments.encoding), arguments.json)


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    warnings.showwarning = show_warning
    try:
        return run(arguments)
    except (ServiceError, OSError, ValueError, TypeError, ImportError) as error:
        print(f"kldiv: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
