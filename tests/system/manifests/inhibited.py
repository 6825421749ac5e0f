"""Runs Alertmanager with our configuration, and gives it pairs of alerts: the second is silenced where both are of
one server, or monitor, and is not where they are of two.

usage: inhibited.py FILE    (alertmanager.yml)"""
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from datetime import datetime, timezone

import yaml

from live import free_port, request, wait_for

SERVER, MONITOR, FLEET = ["instance"], ["group", "monitor"], ["job", "namespace"]
# pairs: an alert, one that it silences, and the labels that both must share. Alerts of --notify have no job.
PAIRS = [
    ("KldivDriftInfinite", "KldivDriftCritical", MONITOR), ("KldivDriftInfinite", "KldivDriftWarning", MONITOR),
    ("KldivDriftStale", "KldivDriftInsufficient", MONITOR), ("KldivAbsent", "KldivDown", ["job"]),
    ("KldivDown", "KldivNotReady", SERVER), ("KldivDown", "KldivErrors", SERVER), ("KldivDown", "KldivRefusing", SERVER),
    ("KldivDown", "KldivSlow", SERVER), ("KldivStoreDown", "KldivRefusing", SERVER),
    ("KldivStoreDown", "KldivDriftStale", FLEET),
    ("KldivDrift", "KldivDriftCritical", MONITOR), ("KldivDrift", "KldivDriftWarning", MONITOR),
    ("KldivDrift", "KldivDriftInfinite", MONITOR), ("KldivDrift", "KldivGroupDrift", ["group", "severity"]),
    ("KldivDriftStale", "KldivDriftStale", MONITOR),
]


def is_of_server(source, target):
    """True if the first alert of a pair is one that --notify sends."""
    return source in ("KldivDrift", target)


def names(matchers):
    """Names of alerts that a list of matchers takes."""
    return re.fullmatch(r'alertname =~? "(.*)"', matchers[0])[1].split("|")


def pairs(config):
    return {(source, target) for rule in config["inhibit_rules"]
            for source in names(rule["source_matchers"]) for target in names(rule["target_matchers"])}


def alert(name, labels):
    return {"labels": {"alertname": name, **labels}, "startsAt": datetime.now(timezone.utc).isoformat()}


def post(url, alerts):
    data = json.dumps(alerts).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url + "/api/v2/alerts", data, headers), timeout=10).close()


def state(url, labels):
    """active, suppressed or, at first, unprocessed."""
    for found in json.loads(request(url + "/api/v2/alerts")[1]):
        if found["labels"] == labels:
            return found["status"]["state"]
    return "unprocessed"


def check(url, case, source, target, shared):
    """Labels are of this case alone, so that nothing is silenced by another's source."""
    def labels(where):
        return {label: f"{label} {case} {where}" for label in SERVER + MONITOR + FLEET + ["severity"]}
    here = labels("here")
    near = alert(target, {**labels("near"), **{label: here[label] for label in shared}})
    far = [alert(target, {**here, label: "elsewhere"}) for label in shared]
    post(url, [alert(source, {label: value for label, value in here.items()
                              if label != "job" or not is_of_server(source, target)})])
    post(url, [near, *far])
    for one in [near, *far]:
        wait_for(f"state of {target}", lambda one=one: state(url, one["labels"]) != "unprocessed")
        found, wanted = state(url, one["labels"]), "suppressed" if one is near else "active"
        if found != wanted:
            sys.exit(f"{target} beside {source}: {found}, and not {wanted}: {one['labels']}")


def main(file):
    config = yaml.safe_load(open(file))
    untested = pairs(config) ^ {(source, target) for source, target, _ in PAIRS}
    if untested:
        sys.exit(f"{file} and these tests differ: {sorted(untested)}")
    config["route"] = {**config["route"], "group_wait": "0s", "group_interval": "1s"}
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "alertmanager.yml")
        yaml.safe_dump(config, open(path, "w"))
        address = f"127.0.0.1:{free_port()}"
        process = subprocess.Popen(["prometheus-alertmanager", f"--config.file={path}", f"--storage.path={place}/data",
                                    f"--web.listen-address={address}", "--cluster.listen-address=", "--log.level=error"])
        try:
            url = f"http://{address}"
            wait_for("Alertmanager", lambda: request(url + "/-/ready")[0] == 200)
            for i, pair in enumerate(PAIRS):
                check(url, i, *pair)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main(sys.argv[1])
