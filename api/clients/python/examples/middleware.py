"""Middleware: a model's service that watches its own inputs. Numbers and texts of JSON bodies are kept, and observed by a
thread every `seconds`, or sooner if there are `rows` of them; no request waits for that. If the monitors' service is away,
rows beyond the limit are dropped.

FastAPI, Starlette and others of ASGI:

    app = FastAPI()
    app.add_middleware(ObservedASGI, inputs=Inputs(kldiv.Client("http://127.0.0.1:8080").group("model")))

Flask, Django and others of WSGI:

    application = ObservedWSGI(application, Inputs(kldiv.Client("http://127.0.0.1:8080").group("model")))"""
import io
import json
import threading

import kldiv

LARGEST = 1 << 20  # bytes of a body that is looked at


class Inputs:
    def __init__(self, group, seconds=60.0, rows=10_000):
        self.group, self.limit, self.seconds = group, rows, seconds
        self.kept, self.lock, self.full = [], threading.Lock(), threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def keep(self, body):
        try:
            row = json.loads(body)
        except ValueError:
            return  # the application says what is wrong with it
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
        try:
            rows = self.good(rows)
            if rows:
                # key=None: the same inputs in the next minute are other observations.
                self.group.observe(table(rows), key=None)
        except (kldiv.ServiceError, ValueError) as error:
            print(f"inputs are not observed: {error}", flush=True)
            if not getattr(error, "status", 422):  # the service is away: they may go with the next ones
                with self.lock:
                    self.kept = (rows + self.kept)[:self.limit]

    def good(self, rows):
        """The rows that the monitors take: one with a text for a number would have all refused. Evaluated, nothing is
        stored: halves are tried until the bad rows are alone."""
        try:
            if table(rows):
                self.group.evaluate(table(rows))
            return rows
        except (kldiv.ServiceError, TypeError) as error:
            if getattr(error, "status", 422) != 422:
                raise
            if len(rows) == 1:
                print(f"an input is not observed: {error}", flush=True)
                return []
            return self.good(rows[:len(rows) // 2]) + self.good(rows[len(rows) // 2:])


def table(rows):
    return {name: [row.get(name) for row in rows] for name in sorted({name for row in rows for name in row})}


class ObservedASGI:
    def __init__(self, app, inputs):
        self.app, self.inputs = app, inputs

    async def __call__(self, scope, receive, send):
        body = bytearray()

        async def received():
            message = await receive()
            body.extend(message.get("body", b"")[:LARGEST + 1 - len(body)])
            return message

        if scope["type"] != "http":
            await self.app(scope, receive, send)
        else:
            await self.app(scope, received, send)
            if len(body) <= LARGEST:
                self.inputs.keep(body)


class ObservedWSGI:
    def __init__(self, application, inputs):
        self.application, self.inputs = application, inputs

    def __call__(self, environ, start_response):
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if size <= LARGEST:
            body = environ["wsgi.input"].read(size)
            environ["wsgi.input"] = io.BytesIO(body)
            self.inputs.keep(body)
        return self.application(environ, start_response)
