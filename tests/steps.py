"""Runs the steps of `make test`, several at once, and prints a table of their times.

A batch step needs nothing but processors: one after another, with all of them and the lowest priority. Beside it runs
one other step, whose tests have time limits and mostly wait. Each step needs what it names first.
A step is a process group of its own, which ends with this process.
The output of a step goes to build/steps/NAME.log, and is printed whole if the step fails: then the steps that need
it are left out, the others go on, and the exit status is 1.

Usage: tests/steps.py [STEP...]; without names, all of them
"""

import os
import signal
import subprocess
import sys
import time

CPUS = len(os.sched_getaffinity(0))
BATCH, RUN = "batch", "run"
LOGS = "build/steps"

# Name, kind, what it needs, arguments of make. In the order in which they start.
STEPS = [
    ("tools", RUN, [], ["tools"]),
    ("programs", BATCH, [], ["programs", "build/kldivd"]),
    ("programs-asan", BATCH, ["programs"], ["build/asan/tests/all", "build/asan/libkldiv.so", "VARIANT=asan"]),
    ("programs-tsan", BATCH, ["programs-asan"], ["build/tsan/stress/pool", "build/tsan/kldivd", "VARIANT=tsan"]),
    ("fuzzers", BATCH, ["programs-asan"], ["fuzzers"]),
    ("build-neon", BATCH, [], ["build/aarch64/kernels"]),
    ("lint", BATCH, ["programs", "tools"], ["lint"]),
    ("load", RUN, ["programs"], ["load"]),
    ("check", RUN, ["programs"], ["check"]),
    ("page", RUN, ["programs", "tools"], ["page"]),
    ("proxies", RUN, ["programs"], ["proxies"]),
    ("local", RUN, ["programs"], ["local"]),
    ("postgresql", RUN, ["programs"], ["postgresql"]),
    ("notify", RUN, ["programs"], ["notify"]),
    ("memory", RUN, ["programs"], ["memory"]),
    ("unprivileged", RUN, ["programs"], ["unprivileged"]),
    ("journey", RUN, ["programs"], ["journey"]),
    ("units", RUN, ["programs"], ["units"]),
    ("contract", RUN, ["programs", "tools"], ["contract"]),
    ("manifests", RUN, ["programs", "tools"], ["manifests"]),
    ("distributed", RUN, ["programs"], ["distributed"]),
    ("python", RUN, ["programs"], ["python"]),
    ("check-asan", RUN, ["programs-asan"], ["check-asan"]),
    ("check-tsan", RUN, ["programs-tsan"], ["check-tsan"]),
    ("neon", BATCH, ["build-neon"], ["neon"]),
    ("uninitialized", BATCH, ["programs"], ["uninitialized"]),
    ("fuzz", BATCH, ["fuzzers"], ["fuzz"]),
]


class Step:
    def __init__(self, name, kind, needs, arguments):
        self.name, self.kind, self.needs = name, kind, needs
        self.state = "waits"
        self.seconds = self.cpu = 0
        self.log = f"{LOGS}/{name}.log"
        self.command = [os.environ.get("MAKE", "make"), "--no-print-directory", *arguments]
        if kind == BATCH:
            self.command = ["nice", "-n", "19", *self.command, f"-j{CPUS}"]

    def start(self):
        # Neither the jobs nor the targets of the make that runs this.
        environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        self.began = time.monotonic()
        self.state = "runs"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment, process_group=0)

    def end(self, status, usage):
        self.seconds = time.monotonic() - self.began
        self.cpu = usage.ru_utime + usage.ru_stime
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.state = "failed" if status else "passed"
        if status:
            with open(self.log, errors="replace") as log:
                print(f"==== {self.name} failed\n{log.read()}", end="")
        print(f"==== {self.name} {self.state} after {self.seconds:.0f} s", flush=True)


def start_next(steps):
    states = {step.name: step.state for step in steps}
    busy = {step.kind for step in steps if step.state == "runs"}
    for step in [step for step in steps if step.state == "waits"]:
        missing = [states[name] for name in step.needs if states.get(name, "passed") != "passed"]
        if "failed" in missing or "left out" in missing:
            step.state = states[step.name] = "left out"
        elif not missing and step.kind not in busy:
            step.start()
            busy.add(step.kind)


def run(steps):
    start_next(steps)
    while any(step.state == "runs" for step in steps):
        pid, status, usage = os.wait3(0)
        for step in steps:
            if step.state == "runs" and step.process.pid == pid:
                step.end(status, usage)
        start_next(steps)


def print_table(steps, seconds):
    print(f"\n{'step':16}{'':10}{'seconds':>8}{'CPU':>8}")
    for step in sorted(steps, key=lambda step: -step.seconds):
        print(f"{step.name:16}{step.state:10}{step.seconds:8.0f}{step.cpu:8.0f}")
    print(f"{'all':16}{'':10}{seconds:8.0f}{sum(step.cpu for step in steps):8.0f}", flush=True)


def main():
    names = sys.argv[1:]
    steps = [Step(*step) for step in STEPS if not names or step[0] in names]
    os.makedirs(LOGS, exist_ok=True)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(steps)
    finally:
        for step in steps:
            if step.state == "runs":
                os.killpg(step.process.pid, signal.SIGTERM)
    print_table(steps, time.monotonic() - began)
    return 0 if all(step.state == "passed" for step in steps) else 1


sys.exit(main())
