"""Python with numpy: JSON; and .npz there, .npy back."""
import io
import json
import sys
import urllib.request

import numpy as np


def post(url, body, content_type, accept):
    headers = {"Content-Type": content_type, "Accept": accept}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return answer.read()


url = sys.argv[1] + "?reduction=batchmean"
input = np.array([[-1, -0.5], [-2, -0.25]], "float32")
target = np.array([[0.25, 0.75], [0.5, 0.5]], "float32")

body = json.dumps({"input": input.tolist(), "target": target.tolist()}).encode()
print(json.loads(post(url, body, "application/json", "application/json"))["loss"])

file = io.BytesIO()
np.savez(file, input=input, target=target)
answer = post(url, file.getvalue(), "application/x-npz", "application/x-npy")
print(np.load(io.BytesIO(answer)))
