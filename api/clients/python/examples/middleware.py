"""WSGI middleware: a model's service that watches its own inputs. Numbers and texts of JSON bodies are kept, and observed
by a thread every `seconds`, or sooner if there are `rows` of them; no request waits for that. If the monitors' service is
away, rows beyond the limit are dropped.

    application = Observed(application, kldiv.Client("http://127.0.0.1:8080").group("model"))"""
import io
import json
import threading

import kldiv


class Observed:
    def __init__(self, application, group, seconds=60.0, rows=10_000):
        self.application, self.group, self.limit, self.seconds = application, group, rows, seconds
        self.kept, self.lock, self.full = [], threading.Lock(), threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        try:
            self.keep(json.loads(body))
        except ValueError:
            pass  # the application says what is wrong with it
        return self.application(environ, start_response)

    def keep(self, row):
        if isinstance(row, dict) and len(self.kept) < self.limit:
            with self.lock:
                self.kept.append({name: value for name, value in row.items() if isinstance(value, (int, float, str))})
            if len(self.kept) >= self.limit:
                self.full.set()

    def run(self):
        while True:
            self.full.wait(self.seconds)
            self.full.clear()
            self.send()

    def send(self):
        with self.lock:
            rows, self.kept = self.kept, []
        names = sorted({name for row in rows for name in row})
        if not names:
            return
        try:
            # key=None: the same inputs in the next minute are other observations.
            self.group.observe({name: [row.get(name) for row in rows] for name in names}, key=None)
        except (kldiv.ServiceError, ValueError) as error:
            print(f"inputs are not observed: {error}", flush=True)
