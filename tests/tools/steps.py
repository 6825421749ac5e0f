"""Runs the steps of `make test` or `make test-all`, several at once, and prints a table of their times.

Kinds of steps:
  build  makes what the others need, with all processors; one after another
  batch  needs nothing but processors: two at a time, with the lowest priority
  wait   mostly waits, with time limits that a busy machine keeps: three at a time, beside builds and batch steps
  sleep  as those, but takes a tenth of a processor: one more
  alone  measures time or fills the machine: no other step beside it but builds and batch steps
Each step needs what it names first, and is a process group of its own, which ends with this process. While steps run, a
line every 20 s tells how many of their tests have passed. The output of a step goes to build/steps/NAME.log; if the step
fails, what is in it beside passed tests is printed, the steps that need it are left out, the others go on, and the exit
status is 1. What steps measured is told at the end: lines of logs that begin with MEASURED; then what was not run: lines
that begin with NOT RUN, and skipped tests; last the tests that failed.

Usage: tests/tools/steps.py test | rest | all | STEP...     rest is what `all` has beyond `test`
"""

import os
import re
import signal
import subprocess
import sys
import time

CPUS = len(os.sched_getaffinity(0))
BUILD, BATCH, WAIT, SLEEP, ALONE = "build", "batch", "wait", "sleep", "alone"
AT_ONCE = {BUILD: 1, BATCH: 2, WAIT: 3, SLEEP: 1, ALONE: 1}
TIMED = {WAIT, SLEEP}
TELL_EVERY = 20
LOGS = "build/steps"

# Name, kind, what it needs, arguments of make. In the order in which they start.
TEST = [
    ("build", BUILD, [], ["all", "build/release/tests/all"]),
    ("check", WAIT, ["build"], ["check"]),
    ("journey", WAIT, ["build"], ["journey"]),
]
REST = [
    ("programs", BUILD, [], ["programs"]),
    ("build-asan", BUILD, ["programs"], ["build/asan/tests/all", "build/asan/libkldiv.so", "VARIANT=asan"]),
    ("load", ALONE, ["programs"], ["load"]),
    ("memory", ALONE, ["programs"], ["memory", "MEMORY_SECONDS=10", "MEMORY_LIMITS=64 256"]),
    ("tools", WAIT, ["programs"], ["tools", f"-j{CPUS}"]),
    ("check-asan", WAIT, ["build-asan"], ["check-asan"]),
    ("page", WAIT, ["tools"], ["page"]),
    ("postgresql", WAIT, ["programs"], ["postgresql"]),
    ("proxies", SLEEP, ["programs"], ["proxies"]),
    ("notify", SLEEP, ["programs"], ["notify"]),
    ("build-tsan", BUILD, ["build-asan"], ["build/tsan/stress/pool", "build/tsan/kldivd", "VARIANT=tsan"]),
    ("python", WAIT, ["programs"], ["python"]),
    ("clients", WAIT, ["programs"], ["clients"]),
    ("distributed", WAIT, ["programs"], ["distributed"]),
    ("contract", WAIT, ["tools"], ["contract"]),
    ("manifests", WAIT, ["tools"], ["manifests"]),
    ("check-tsan", WAIT, ["build-tsan"], ["check-tsan"]),
    ("units", WAIT, ["programs"], ["units"]),
    ("journey-all", WAIT, ["programs"], ["journey", "PARTS=--all"]),
    ("check-root", WAIT, ["programs"], ["check-root"]),
    ("neon", BATCH, [], ["neon"]),
    ("fuzz", BATCH, ["build-asan"], ["fuzz"]),
    ("uninitialized", BATCH, ["programs"], ["uninitialized"]),
    ("walk", BATCH, ["programs"], ["walk"]),
    ("lint", BATCH, ["tools"], ["lint-all"]),
]
SETS = {"test": TEST, "rest": REST, "all": TEST + REST}

PASSED = re.compile(r"^\[PASS\] |^ok |^test_.* \.\.\. ok$", re.M)
MEASURED = re.compile(r"^MEASURED: (.*)", re.M)
LEFT_OUT = re.compile(r"^NOT RUN: .*|^\[SKIP\] (?!.*Test is disabled).*", re.M)
NOISE = re.compile(r"^\[(PASS|RUN |====)\] (?!Synthesis).*\n", re.M)  # of a step that failed
FAILED = re.compile(r"^\[----\] (?:tests/.*Assertion Failed|  .+)|^\[(?:FAIL|CRASH)\] .*|^not ok .*", re.M)
LAST_LINES = 12  # of a step that failed without such lines


class Step:
    def __init__(self, name, kind, needs, arguments):
        self.name, self.kind, self.needs = name, kind, needs
        self.state = "waits"
        self.seconds = self.cpu = 0
        self.log = f"{LOGS}/{name}.log"
        self.command = [os.environ.get("MAKE", "make"), "--no-print-directory", *arguments]
        if kind in (BUILD, BATCH):
            self.command.append(f"-j{CPUS}")
        if kind == BATCH:
            self.command[:0] = ["nice", "-n", "19"]

    def start(self):
        # Neither the jobs nor the targets of the make that runs this.
        environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        self.began = time.monotonic()
        self.state = "runs"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment, process_group=0)

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def failures(self):
        text = self.text()
        return FAILED.findall(text) or text.splitlines()[-LAST_LINES:]

    def tell(self):
        passed = len(PASSED.findall(self.text()))
        tests = f"{passed:5} passed" if passed else " " * 12
        if self.state == "runs":
            tests = f"{passed:5} passed so far" if passed else "is running"
        print(f"{self.name:14}{tests if self.state == 'runs' else self.state:24}"
              f"{tests if self.state != 'runs' else '':14}{time.monotonic() - self.began:6.0f} s", flush=True)

    def end(self, status, usage):
        self.seconds = time.monotonic() - self.began
        self.cpu = usage.ru_utime + usage.ru_stime
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.state = "FAILED" if status else "passed"
        if status:
            print(f"==== {self.name}\n{NOISE.sub('', self.text())}====")
        self.tell()


def fits(step, running):
    """True if a step may run beside those that run."""
    kinds = [other.kind for other in running]
    excluded = TIMED if step.kind == ALONE else {ALONE} if step.kind in TIMED else set()
    return kinds.count(step.kind) < AT_ONCE[step.kind] and not excluded.intersection(kinds)


def start_next(steps):
    states = {step.name: step.state for step in steps}
    for step in [step for step in steps if step.state == "waits"]:
        missing = [states[name] for name in step.needs if states.get(name, "passed") != "passed"]
        if "FAILED" in missing or "left out" in missing:
            step.state = states[step.name] = "left out"
        elif not missing and fits(step, [other for other in steps if other.state == "runs"]):
            step.start()


def next_end(steps):
    """The step that ends next, with its status and usage; None after some seconds without one."""
    for _ in range(TELL_EVERY * 10):
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        for step in steps:
            if pid and step.state == "runs" and step.process.pid == pid:
                return step, status, usage
        time.sleep(0.1)
    return None


def run(steps):
    start_next(steps)
    while any(step.state == "runs" for step in steps):
        ended = next_end(steps)
        if ended:
            ended[0].end(*ended[1:])
            start_next(steps)
        else:
            for step in steps:
                if step.state == "runs":
                    step.tell()


def print_results(steps, seconds):
    print(f"\n{'step':16}{'':10}{'tests':>8}{'seconds':>9}{'CPU':>7}")
    passed, left_out, measured, cpu = 0, [], [], 0
    for step in sorted(steps, key=lambda step: -step.seconds):
        text = step.text() if step.seconds else ""
        tests = len(PASSED.findall(text))
        measured += [f"{step.name}: {line}" for line in MEASURED.findall(text)]
        left_out += [f"{step.name}: {line}" for line in LEFT_OUT.findall(text)]
        print(f"{step.name:16}{step.state:10}{tests or '':8}{step.seconds:9.0f}{step.cpu:7.0f}")
        passed += tests
        cpu += step.cpu
    print(f"{'all':16}{'':10}{passed:8}{seconds:9.0f}{cpu:7.0f}\n")
    for line in measured + left_out:
        print(line)
    for step in [step for step in steps if step.state == "FAILED"]:
        print(f"\n{step.name} FAILED:", *step.failures(), sep="\n  ")
    states = [step.state for step in steps]
    print(f"{states.count('passed')} of {len(steps)} steps passed, {passed} tests; "
          f"{len(left_out)} not run{' (above)' if left_out else ''}; {seconds:.0f} s", flush=True)


def choose(names):
    """The steps of sets and of names, with what builds for them."""
    rows = {row[0]: row for row in SETS["all"]}
    unknown = [name for name in names if name not in SETS and name not in rows]
    if unknown or not names:
        sys.exit(f"no such step: {' '.join(unknown)}" if unknown else __doc__)
    chosen = [row[0] for name in names for row in SETS.get(name, [rows.get(name)])]
    for name in chosen:
        chosen += [need for need in rows[name][2] if need not in chosen and names != ["rest"]]
    return [row for row in SETS["all"] if row[0] in chosen]


def main():
    steps = [Step(*row) for row in choose(sys.argv[1:])]
    os.makedirs(LOGS, exist_ok=True)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(steps)
    finally:
        for step in steps:
            if step.state == "runs":
                os.killpg(step.process.pid, signal.SIGTERM)
    print_results(steps, time.monotonic() - began)
    return 0 if all(step.state == "passed" for step in steps) else 1


sys.exit(main())
