"""Python with requests: a monitor of a column; the verdict on a batch."""
import sys
import uuid

import requests


def call(method, url, **content):
    answer = requests.request(method, url, timeout=10, **content)
    if not answer.ok:
        raise SystemExit(answer.json()["detail"])
    return answer.json()


monitor = sys.argv[1] + "/shop/basket"  # the argument is http://HOST/monitors
reference = [i % 50 for i in range(1000)]
batch = [20 + i % 40 for i in range(200)]

# Bins are made of the values. The monitor is made again with the same result, as often as you like.
call("PUT", monitor, json={"reference": {"values": reference}, "binning": {"method": "quantile"}})

# With a key the request may be repeated after a timeout, and counts once.
result = call("POST", monitor + "/observations", json={"values": batch},
              headers={"Idempotency-Key": str(uuid.uuid4())})
print(result["verdict"], result["kl"], "because of", ", ".join(result["top"]))
