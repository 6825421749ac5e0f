"""Middleware: a model's service that watches its own inputs. Numbers and texts of JSON bodies are kept, and observed by a
thread every `seconds`, or sooner if there are `rows` of them; no request waits for that. If the monitors' service is away,
the latest inputs wait for it, ten times `rows`.

FastAPI, Starlette and others of ASGI:

    app = FastAPI()
    app.add_middleware(ObservedASGI, inputs=Inputs(kldiv.Client("http://127.0.0.1:8080").group("model")))

Flask, Django and others of WSGI:

    application = ObservedWSGI(application, Inputs(kldiv.Client("http://127.0.0.1:8080").group("model")))"""
import collections
import io
import json
import threading
import uuid

import kldiv

LARGEST = 1 << 20  # bytes of a body that is looked at
WAITING = 10  # times `rows` may wait for the service


class Inputs:
    def __init__(self, group, seconds=60.0, rows=10_000):
        self.group, self.limit, self.seconds = group, rows, seconds
        self.kept, self.lock, self.full = [], threading.Lock(), threading.Event()
        self.batches = collections.deque()  # with their keys
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
        if rows:
            # A key for each batch: the same inputs in the next minute are others, but a batch counts once however often it
            # is sent. It stays as it is: its response may be what was lost.
            self.batches.append((str(uuid.uuid4()), rows))
        while sum(len(rows) for _, rows in self.batches) > WAITING * self.limit:
            self.batches.popleft()
        while self.batches:
            try:
                self.observe(*self.batches[0])
            except (kldiv.ServiceError, ValueError) as error:
                print(f"inputs are not observed: {error}", flush=True)
                if not getattr(error, "status", 422):
                    return  # the service is away: the batches may go with the next one
            self.batches.popleft()

    def observe(self, key, rows):
        rows[:] = self.good(rows)
        if rows:
            self.group.observe(table(rows), key=key)

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
