"""The units under a real systemd, process 1 of namespaces of its own: restarts under load lose nothing, a hanging
process is started anew, clients of a killed one wait for the next, monitors stay.

Needs root, and a machine that lets it make namespaces; else it says so and does nothing.
Usage: tests/system/boot/run.py build/kldivd
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = os.path.join(HERE, "../../../docker/systemd")
TARGETS = "basic exit local-fs multi-user paths shutdown slices sockets sysinit timers umount".split()
UNSHARE = ["unshare", "--pid", "--mount", "--fork", "--uts", "--ipc", "--net", "--cgroup", "--mount-proc"]
BODY = json.dumps({"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]})
LOSS = 0.02047633989982384


def skip(why):
    print("NOT RUN: the units under a systemd of their own: " + why)
    sys.exit(0)


# ---- Load, in a process of its own in the namespaces


def post_until(end, served, failed):
    connection = None
    while time.monotonic() < end:
        connection = connection or http.client.HTTPConnection("127.0.0.1", 8080, timeout=20)
        try:
            connection.request("POST", "/kl_div", BODY, {"Content-Type": "application/json"})
            response = connection.getresponse()
            loss = json.load(response)["loss"]
            good = response.status == 200 and abs(loss - LOSS) < 1e-15
            (served if good else failed).append(response.status)
            if response.will_close:
                connection = None
        except (OSError, http.client.HTTPException, ValueError, KeyError) as problem:
            failed.append(repr(problem))
            connection = None


def load(seconds):
    served, failed = [], []
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=post_until, args=(end, served, failed)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(served)} served, {len(failed)} failed {failed[:3]}")
    sys.exit(1 if failed or not served else 0)


# ---- systemd


def cgroup():
    """A new group of version 2 for the namespaces, whose top it becomes; None if there cannot be one."""
    for top in "/sys/fs/cgroup/unified", "/sys/fs/cgroup":
        if os.path.exists(top + "/cgroup.controllers"):
            folder = f"{top}/kldiv-boot-{os.getpid()}"
            try:
                os.mkdir(folder)
                return folder
            except OSError:
                return None
    return None


def remove_group(folder):
    for path, _, _ in sorted(os.walk(folder), reverse=True):
        try:
            os.rmdir(path)
        except OSError:
            pass


def prepare(folder, server):
    units = folder + "/units"
    os.makedirs(units)
    shutil.copy(server, folder + "/kldivd")
    for target in TARGETS:
        shutil.copy(f"/lib/systemd/system/{target}.target", units)
    for name in os.listdir(UNITS):
        with open(f"{UNITS}/{name}") as file, open(f"{units}/{name}", "w") as to:
            to.write(file.read().replace("/usr/bin/kldivd", "/opt/kldivd"))
    wants = ("multi-user", "kldivd.service"), ("sockets", "kldivd.socket"), ("sockets", "kldivd-admin.socket")
    for target, name in wants:
        os.makedirs(f"{units}/{target}.target.wants", exist_ok=True)
        os.symlink("../" + name, f"{units}/{target}.target.wants/{name}")
    os.makedirs(units + "/kldivd.service.d")
    with open(units + "/kldivd.service.d/test.conf", "w") as file:
        file.write("[Service]\nWatchdogSec=2\nStandardError=append:/run/kldivd.log\n")


class Systemd:
    def __init__(self, folder, group):
        def enter():
            with open(group + "/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))

        def run(*more):
            return subprocess.Popen(UNSHARE + [HERE + "/inside.sh", folder, *more], preexec_fn=enter,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        trial = run("try")
        said = trial.communicate()[1].decode()
        if trial.returncode != 0:
            skip("no namespaces: " + said.strip())
        self.outer = run()
        self.pid = None

    def find(self):
        with open(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children") as file:
            self.pid = int(file.read().split()[0])

    def inside(self, *command):
        return ["nsenter", "-t", str(self.pid), "-m", "-p", "-u", "-i", "-C", "-n", *command]

    def ask(self, *command):
        done = subprocess.run(self.inside(*command), capture_output=True, timeout=60)
        return done.stdout.decode().strip()

    def show(self, what):
        return self.ask("systemctl", "show", "kldivd.service", "-p", what, "--value")

    def wait(self, what, value):
        for _ in range(300):
            if self.show(what) == value:
                return
            time.sleep(0.1)
        sys.exit(f"boot: {what} is {self.show(what)}, not {value}; the log: " + self.ask("tail", "/run/kldivd.log"))

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
        self.outer.kill()
        self.outer.wait()


def expect(good, what):
    if not good:
        sys.exit("boot: " + what)
    print("boot: " + what)


def check(system, script):
    system.wait("ActiveState", "active")
    log = system.ask("cat", "/run/kldivd.log")
    locked = next(line for line in log.splitlines() if "locked in" in line)
    expect("seccomp" in locked.split(" not=")[0], locked[locked.index("locked in"):])
    expect(" warning " not in log, "no warning in its log")
    curl = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}")
    expect(system.ask(*curl, "http://127.0.0.1:9090/metrics") == "200", "metrics have a socket of their own")
    counts = "seq 1000 | sed 1ix | curl -sT - http://127.0.0.1:8080/monitors/try"
    expect('"try"' in system.ask("sh", "-c", counts), "a monitor is stored")

    running = subprocess.Popen(system.inside(sys.executable, script, "--load", "8"), stdout=subprocess.PIPE)
    for _ in range(3):
        time.sleep(1)
        system.ask("systemctl", "restart", "kldivd")
    said = running.communicate()[0].decode().strip()
    expect(running.returncode == 0, "three restarts under load: " + said)
    expect('"try"' in system.ask("curl", "-s", "http://127.0.0.1:8080/monitors/try"), "the monitor is there again")

    system.ask("systemctl", "reload", "kldivd")
    system.wait("ActiveState", "active")
    system.ask("kill", "-STOP", system.show("MainPID"))
    system.wait("NRestarts", "1")
    system.wait("ActiveState", "active")
    expect(True, "a process that hangs was started anew")
    system.ask("kill", "-KILL", system.show("MainPID"))
    expect(system.ask(*curl, "http://127.0.0.1:8080/livez") == "200", "a client waited for the one after a killed one")
    system.ask("systemctl", "stop", "kldivd.socket", "kldivd-admin.socket", "kldivd.service")
    expect(system.show("Result") == "success", "it stops in order")


def main():
    if sys.argv[1] == "--load":
        load(float(sys.argv[2]))
    if os.geteuid() != 0 or not shutil.which("unshare") or not os.path.exists("/lib/systemd/systemd"):
        skip("it needs root, unshare and systemd")
    group = cgroup() or skip("no control group of version 2 can be made")
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, sys.argv[1])
        system = None
        try:
            system = Systemd(folder, group)
            time.sleep(1)
            system.find()
            check(system, os.path.abspath(__file__))
        finally:
            if system:
                system.end()
            time.sleep(0.2)
            remove_group(group)


main()
