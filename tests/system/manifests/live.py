"""Runs Prometheus beside two servers that have had some traffic, and asks it each expression of the rules and of
the dashboard's panels: each must give a series, and no value may be NaN. Then looks which alerts there are: those of
drift once, and not once for each server.

usage: live.py KLDIVD FOLDER    (docker)"""
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

WAIT_SECONDS = 60
LOSS = {"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}
SWAPPED = {"input": [[0.3, 0.7]], "target": [[-1, -0.5]]}

# monitor: settings and observations. The first drifts, the second has a value that its reference rules out, the
# third has too few observations.
MONITORS = {
    "drifts": ({"bins": {"edges": [0, 10, 50]}, "reference": {"counts": [600, 300], "overflow": 100}},
               {"counts": [30, 90], "overflow": 80}),
    "ruled-out": ({"bins": {"labels": ["a", "b"]}, "reference": {"probabilities": [1, 0]}, "pseudocount": 0},
                  {"counts": [100, 100]}),
    "waits": ({"bins": {"labels": ["a", "b"]}, "reference": {"counts": [60, 40]}}, {"counts": [3, 2]}),
}
DRIFT_ALERTS = {("KldivDriftCritical", "drifts"), ("KldivDriftCritical", "ruled-out"),
                ("KldivDriftInfinite", "ruled-out")}


def request(url, method="GET", body=None):
    """Status and text of an answer, whatever its status; 0 if nobody listens."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError as error:
        return 0, str(error)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(what, is_there):
    end = time.monotonic() + WAIT_SECONDS
    while not is_there():
        if time.monotonic() > end:
            sys.exit(f"no {what} within {WAIT_SECONDS} s")
        time.sleep(0.1)


class Fleet:
    """Two servers and a Prometheus, all on 127.0.0.1."""

    def __init__(self, binary, folder, place):
        self.processes, self.targets = [], []
        for i in range(2):
            port, notify = os.path.join(place, f"port{i}"), os.path.join(place, "notify.json")
            with open(notify, "w") as file:  # a receiver that is not there
                json.dump([{"name": "ops", "url": f"http://127.0.0.1:{free_port()}/", "format": "json"}], file)
            self.run([binary, "--listen", "127.0.0.1:0", "--port-file", port, "--log-level", "error",
                      "--notify", notify])
            wait_for("server", lambda port=port: os.path.exists(port) and open(port).read().strip())
            self.targets.append("127.0.0.1:" + open(port).read().strip())
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        self.run(["prometheus", f"--config.file={self.configure(folder, place)}", f"--storage.tsdb.path={place}/data",
                  f"--web.listen-address={address}", "--log.level=error"])

    def run(self, command):
        self.processes.append(subprocess.Popen(command))

    def configure(self, folder, place):
        """Our configuration, with targets that are here, without Alertmanager, and looking each second."""
        config = yaml.safe_load(open(os.path.join(folder, "prometheus/prometheus.yml")))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [os.path.abspath(os.path.join(folder, "prometheus", f)) for f in config["rule_files"]]
        del config["alerting"]
        (job,) = config["scrape_configs"]
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": self.targets}]
        path = os.path.join(place, "prometheus.yml")
        yaml.safe_dump(config, open(path, "w"))
        return path

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        return [process.wait() for process in self.processes]

    def query(self, expression):
        text = urllib.parse.urlencode({"query": expression})
        status, answer = request(f"{self.url}/api/v1/query?{text}")
        answer = json.loads(answer)
        if status != 200:
            sys.exit(f"{expression}\n{answer['error']}")
        result = answer["data"]["result"]
        return [("", float(result[1]))] if answer["data"]["resultType"] == "scalar" else [
            (sample["metric"], float(sample["value"][1])) for sample in result]


def define(target):
    for name, (settings, observations) in MONITORS.items():
        url = f"http://{target}/monitors/test/{name}"
        assert request(url, "PUT", settings)[0] == 201, name
        assert request(url + "/observations", "POST", observations)[0] == 200, name


def load(targets, stop):
    """Some of each kind of request, several times a second, until told to stop."""
    while not stop.is_set():
        for target in targets:
            url = f"http://{target}"
            assert request(url + "/kl_div", "POST", LOSS)[0] == 200
            assert request(url + "/kl_div?diagnose=true", "POST", SWAPPED)[0] == 200
            assert request(url + "/kl_div", "POST", {})[0] == 422
            assert request(url + "/readyz")[0] == 200
            name = "drifts"
            assert request(f"{url}/monitors/test/{name}/observations", "POST", MONITORS[name][1])[0] == 200
        stop.wait(0.2)


def rules(folder):
    for group in yaml.safe_load(open(os.path.join(folder, "prometheus/rules.yml")))["groups"]:
        yield from group["rules"]


def expressions(folder):
    """Yields (where, expression). An alert is asked for what it compares, or there would be no series but when it
    fires; the variables of the dashboard are those that it begins with."""
    for rule in rules(folder):
        expression = rule["expr"]
        if "alert" in rule:
            expression = re.sub(r"^absent\((.*)\)$", r"\1", expression)
            expression = re.sub(r" unless .*", "", expression)  # its own record has a series
            expression = re.sub(r"\s(==|>|<)\s\S+", "", expression)
        yield rule.get("alert") or rule["record"], expression
    dashboard = json.load(open(os.path.join(folder, "grafana/dashboard.json")))
    variables = {v["name"]: v.get("allValue") for v in dashboard["templating"]["list"]}
    variables["__rate_interval"] = "1m"
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], re.sub(r"\$(\w+)", lambda name: variables[name[1]], target["expr"])
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if found:
            yield variable["name"], f"count by ({found[2]}) ({found[1]})".replace("$job", ".*").replace("$group", ".*")


CERTIFICATE = "kldiv_tls_certificate_expiry_timestamp_seconds"


def check_expressions(fleet, folder):
    n = 0
    for where, expression in expressions(folder):
        if CERTIFICATE in expression:
            print(f"NOT RUN: {where} beside servers: they have no certificate; the suite tls has its metric")
            continue
        samples = fleet.query(expression)
        if not samples:
            sys.exit(f"{where}: no series\n{expression}")
        for metric, value in samples:
            if math.isnan(value):
                sys.exit(f"{where}: NaN of {metric}\n{expression}")
        n += 1
    return n


def firing(fleet):
    alerts = json.loads(request(fleet.url + "/api/v1/alerts")[1])["data"]["alerts"]
    return [a["labels"] for a in alerts if a["state"] == "firing"]


def check_alerts(fleet):
    alerts = firing(fleet)
    names = sorted((a["alertname"], a.get("monitor")) for a in alerts)
    if names != sorted(DRIFT_ALERTS):
        sys.exit(f"these alerts fire: {names}")
    if any("instance" in a for a in alerts):
        sys.exit(f"alerts are not folded: {alerts}")
    return len(alerts)


def check_metrics(target):
    """promtool's own linter on what a server exports."""
    text = request(f"http://{target}/metrics")[1]
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    if done.returncode or done.stderr or done.stdout:
        sys.exit(f"promtool: {done.stdout}{done.stderr}")


def watch(fleet, folder):
    stop = threading.Event()
    for target in fleet.targets:
        define(target)
    client = threading.Thread(target=load, args=(fleet.targets, stop))
    client.start()
    try:
        rate = "instance:kldiv_http_requests_failed:ratio_rate5m"
        wait_for("rates", lambda: request(fleet.url + "/-/ready")[0] == 200 and len(fleet.query(rate)) == 2)
        wait_for("alerts", lambda: len(firing(fleet)) >= len(DRIFT_ALERTS))
        n = check_expressions(fleet, folder)
        alerts = check_alerts(fleet)
        check_metrics(fleet.targets[0])
        print(f"{n} expressions give series, none of them NaN; {alerts} alerts of drift, from two servers")
    finally:
        stop.set()
        client.join()


def main():
    binary, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as place:
        fleet = Fleet(binary, folder, place)
        try:
            watch(fleet, folder)
        finally:
            statuses = fleet.stop()
        if any(statuses):
            sys.exit(f"exit statuses: {statuses}")


if __name__ == "__main__":
    main()
