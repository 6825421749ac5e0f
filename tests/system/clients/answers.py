"""A server that answers what its CASES say, for clients that have to tell what went wrong.

Its case is set, or the first segment of each path; "forward" is what another service answers. `python3 answers.py PORT_FILE` serves by paths until it is ended."""
import http.client
import http.server
import json
import sys
import threading

PROBLEM = {"type": "urn:kldiv:problem:shape_mismatch", "title": "The shapes do not fit", "status": 422, "code": "shape_mismatch",
           "detail": "input has shape [2, 2] but target has shape [2]", "errors": []}
BUSY = {**PROBLEM, "status": 503, "code": "busy", "detail": "the memory is used up for now"}
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1>nginx</body></html>"
JSON, HTML = "application/problem+json", "text/html"
CASES = {  # status, Content-Type, body
    "refused": (422, JSON, json.dumps(PROBLEM).encode()),
    "busy": (503, JSON, json.dumps(BUSY).encode()),
    "gateway": (502, HTML, PAGE),
    "timeout": (504, "application/json", b'{"message": "upstream timed out"}'),
    "empty": (503, JSON, b""),
    "odd": (503, "application/json", b'{"detail": {"a": 1}, "error": [1]}'),
    "array": (503, "application/json", b"[]"),
    "null": (503, "application/json", b"null"),
    "broken": (503, "application/json", b'{"detail": "\xff\x00'),
    "braces": (422, JSON, json.dumps({**PROBLEM, "detail": "a {glue} of 100 % \u00fc"}).encode()),
    "page": (200, HTML, PAGE),
    "nothing": (200, "application/json", b"{}"),
    "moved": (301, HTML, b""),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.case == "forward":
            return self.forward(body)
        case, _, rest = self.path[1:].partition("/") if self.server.case is None else (self.server.case, "", self.path)
        key = self.headers.get("Idempotency-Key", "")
        self.server.keys.append(key)
        if case == "repeat":  # the third request is answered: with the keys of all
            last = self.server.keys[-3:]
            case = "busy" if len(self.server.keys) % 3 else None
        status, kind, body = CASES[case] if case else (200, "application/json", json.dumps(
            {"monitors": [{"name": name} for name in last], "warnings": [], "loss": 0}).encode())
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status >= 500:
            self.send_header("Retry-After", "0")
        if status == 301:
            self.send_header("Location", "http://127.0.0.1:1/" + rest)
        self.end_headers()
        self.wfile.write(body)

    def forward(self, body):
        connection = http.client.HTTPConnection(self.server.service)
        connection.request(self.command, self.path, body, {"Content-Type": self.headers.get("Content-Type", "")})
        response = connection.getresponse()
        self.send_response(response.status)
        self.end_headers()
        self.wfile.write(response.read())
        connection.close()

    do_GET = do_PUT = do_POST = answer

    def log_message(self, *_):
        pass


class Answers:
    """Serves in a thread, in a `with` block."""

    def __init__(self, service=None):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.case, self.server.keys, self.server.service = None, [], service
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    with Answers() as answers:
        with open(sys.argv[1], "w") as out:
            out.write(answers.url)
        threading.Event().wait()
