"""The client: losses by every way, errors, connections that are kept, what is repeated, asyncio."""
import asyncio
import contextlib
import inspect
import itertools
import math
import multiprocessing
import os
import pickle
import socket
import threading
import time
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
from service import Script, Server

import kldiv
from kldiv import _transport

try:
    import torch
except ImportError:
    torch = None

OK = (200, "", "{}")


def operands(shape=(6, 9), dtype="float32"):
    a = np.random.default_rng(3).standard_normal((2, *shape))
    p = np.exp(a) / np.exp(a).sum(-1, keepdims=True)
    return np.log(p[0]).astype(dtype), p[1].astype(dtype)


class Losses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--shared-memory", "kldiv_")
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)

    def setUp(self):
        warnings.simplefilter("ignore")

    def test_the_bits_of_this_process(self):
        for url in self.server.url, self.server.url + "/", f"unix:{self.server.socket}":
            with kldiv.Client(url) as client:
                self.assertTrue(client.ready())
                for dtype in "float64", "float32", "float16":
                    x, t = operands(dtype=dtype)
                    for options in [{"reduction": "batchmean"}, {"reduction": "none"}, {"dim": -1, "weight": t[:, 0]},
                                    {"reduction": "none", "dim": [1], "mask": x[:, 0] > -2},
                                    {"base": 2, "reduction": "sum"}]:
                        ours, theirs = kldiv.kl_div(x, t, **options), client.kl_div(x, t, **options)
                        self.assertEqual((ours.tobytes(), ours.dtype, ours.shape),
                                         (theirs.tobytes(), theirs.dtype, theirs.shape))

    def test_gradients_and_partial_results(self):
        x, t = operands()
        loss, grads = self.client.value_and_grad(x, t, ["input", "target"], reduction="none", grad_output=t)
        own_loss, own = kldiv.value_and_grad(x, t, ["input", "target"], reduction="none", grad_output=t)
        self.assertEqual(loss.tobytes(), own_loss.tobytes())
        self.assertEqual([grads[name].tobytes() for name in own], [own[name].tobytes() for name in own])
        parts = [self.client.partial(x[i:i + 2], t[i:i + 2], dim=1) for i in range(0, 6, 2)]
        total, divisor = (math.fsum(v for part in parts for v in part[i]) for i in (0, 1))
        self.assertEqual(np.float32(total / divisor), kldiv.kl_div(x, t, dim=1))

    def test_sparse_targets(self):
        x, t = operands((6, 40))
        logits = np.log(t)
        normalizer = np.log(np.exp(logits).sum(-1))
        with self.client.region(1 << 20) as region:
            for kind in np.int64, np.int32, np.uint16:
                indices = np.argsort(-t, -1)[:, :5].astype(kind)
                for values, options in [
                        (t, {}), (t, {"tail": "drop", "reduction": "none", "divergence": "js", "weight": t[:, 0], "mask": x[:, 0] > -2}),
                        (logits, {"target_space": "logit", "log_normalizer": normalizer, "reduction": "sum"})]:
                    named = np.take_along_axis(values, indices.astype(np.int64), -1)
                    own = kldiv.sparse_kl_div(x, indices, named, **options)
                    for student in x, region.array(x):  # as safetensors, and by the Open Inference Protocol
                        theirs = self.client.sparse_kl_div(student, indices, named, **options)
                        self.assertEqual((own.tobytes(), own.shape), (theirs.tobytes(), theirs.shape))
                        _, grads = self.client.value_and_grad(student, named, ["input", "target"], indices=indices,
                                                              **{**options, "reduction": "sum"})
                        _, same = kldiv.value_and_grad(x, named, ["input", "target"], indices=indices,
                                                       **{**options, "reduction": "sum"})
                        self.assertEqual([grads[name].tobytes() for name in same], [same[name].tobytes() for name in same])
        indices[3, 1] = 40
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.client.sparse_kl_div(x, indices, np.take_along_axis(t, indices % 40, -1))
        self.assertEqual((raised.exception.code, raised.exception.pointer), ("indices_invalid", "#/indices/3/1"))
        self.assertRaises(TypeError, self.client.sparse_kl_div, x, t, t)

    def test_shared_memory(self):
        x, t = operands((50, 40))
        with self.client.region(1 << 20) as region:
            shared = region.array(x), region.array(t)
            for options in {"reduction": "sum"}, {"reduction": "none"}, {"mask": t > 0.1}:
                self.assertEqual(self.client.kl_div(*shared, **options).tobytes(), kldiv.kl_div(x, t, **options).tobytes())
            # One operand there, the other here.
            self.assertEqual(self.client.kl_div(shared[0], t), kldiv.kl_div(x, t))
            _, grads = self.client.value_and_grad(*shared, reduction="sum")
            self.assertEqual(grads["input"].tobytes(), (-t).tobytes())
            shared[1][0, 0] = -1
            with self.assertRaises(kldiv.ServiceError) as raised:
                self.client.kl_div(*shared, compat="math")
            self.assertEqual((raised.exception.status, raised.exception.code), (422, "inference_failed"))
            self.assertRaises(MemoryError, region.empty, 1 << 20)
            if torch:
                whole = torch.tensor([[1 + 2j, 0.5 - 1j]], dtype=torch.complex128)
                for tensor in (torch.from_numpy(t).requires_grad_(), whole.conj().imag, torch._efficientzerotensor((2, 3)),
                               torch.from_numpy(t)[:, ::3], torch.from_numpy(t).to(torch.bfloat16), torch.tensor(0.5)):
                    copy = region.array(tensor)
                    self.assertTrue(torch.equal(torch.as_tensor(copy), tensor.detach() + 0))
                    self.assertEqual(self.client.kl_div(copy, copy, reduction="none", log_target=True).sum(), 0)
            path = f"/dev/shm/{region.name}"
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertFalse(os.path.exists(path))
        self.assertEqual(self.client.request("GET", "/v2/systemsharedmemory/status"), [])
        self.assertRaises(kldiv.ServiceError, self.client.region, 4096, "other_")
        self.assertFalse([name for name in os.listdir("/dev/shm") if name.startswith("other_")])

    @unittest.skipUnless(torch, "python3-torch is not installed")
    def test_tensors(self):
        x, t = (torch.from_numpy(a) for a in operands())
        for dtype in torch.float64, torch.float32, torch.bfloat16:
            a, b = x.to(dtype), t.to(dtype)
            for reduction in "sum", "none":
                loss = self.client.kl_div(a, b, reduction=reduction)
                self.assertEqual(loss.dtype, dtype)
                self.assertTrue(torch.equal(loss, kldiv.kl_div(a, b, reduction=reduction)))
        _, grads = self.client.value_and_grad(x, t, reduction="sum")
        self.assertTrue(torch.equal(grads["input"], -t))

    def test_errors_tell_where(self):
        x, t = operands()
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.client.kl_div(x, t, reducton="sum")
        error = raised.exception
        self.assertEqual((error.status, error.code, error.pointer), (422, "option_unknown", "reducton"))
        self.assertRegex(str(error), r"^422 option_unknown: .* \(at reducton\)$")
        self.assertTrue(error.request_id)
        with self.assertRaises(kldiv.ServiceError) as raised:
            self.client.request("POST", "/kl_div", json_body={"input": [1, None], "target": [1, 2]})
        self.assertEqual((raised.exception.code, raised.exception.pointer), ("element_invalid", "#/input/1"))
        self.assertRegex(str(raised.exception), r"^422 element_invalid: .* \(at #/input/1\)$")

    def test_wrong_types_of_options(self):
        x, t = operands()
        for name, value in [("log_target", "false"), ("broadcast", 1), ("reduction", None), ("dim", 1.5), ("dim", "1"),
                            ("size_average", "x"), ("diagnose", None), ("mask", x), ("weight", "1"), ("reduction", 7),
                            ("input_space", 3), ("temperature", "x"), ("base", 10)]:
            for call in self.client.kl_div, self.client.value_and_grad, self.client.partial:
                with self.assertRaises((TypeError, ValueError, kldiv.ServiceError), msg=name):
                    call(x, t, **{name: value})

    def test_labels_of_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        x, t = (pandas.DataFrame(v, list("abcdef")) for v in operands(dtype="float64"))
        shuffled = t.loc[list("fbdcea")]
        self.assertEqual(self.client.kl_div(x, shuffled), kldiv.kl_div(x, t))
        loss, grads = self.client.value_and_grad(x, shuffled, ["input", "target"], reduction="none", dim=-1)
        self.assertEqual((list(loss.index), list(grads["target"].index)), (list("abcdef"), list("fbdcea")))
        pandas.testing.assert_frame_equal(grads["input"], -t)

    def test_warnings_are_given(self):
        x, t = operands()
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            self.client.kl_div(x, t)
            self.client.kl_div(x, t, reduction="sum", diagnose=True)
            self.client.kl_div(np.exp(x), t, reduction="sum", diagnose=True)
        self.assertIn("reduction: 'mean' divides", str(given[0].message))
        self.assertIn("does input hold probabilities?", str(given[1].message))
        self.assertIn("did you pass probabilities?", str(given[2].message))
        self.assertEqual({w.filename for w in given}, {__file__})

    def test_a_body_that_is_too_large_is_said_to_be(self):
        small = Server("--max-body", "100000")
        self.addCleanup(small.stop)
        x, t = operands((1000, 5000))
        with self.assertRaises(kldiv.ServiceError) as raised:
            kldiv.Client(small.url).kl_div(x, t)
        self.assertEqual((raised.exception.status, raised.exception.code), (413, "body_too_large"))

    def test_threads_share_a_client(self):
        x, t = operands((100, 100))
        loss = kldiv.kl_div(x, t)
        with ThreadPoolExecutor(8) as executor:
            calls = [executor.submit(self.client.kl_div, x, t) for _ in range(100)]
            self.assertEqual({float(call.result()) for call in calls}, {float(loss)})
        self.assertLessEqual(len(self.client.transport.idle), 8 + 1)

    def test_asyncio(self):
        x, t = operands()

        async def many():
            async with kldiv.AsyncClient(self.server.url) as client:
                self.assertTrue(await client.ready())
                return await asyncio.gather(*(client.kl_div(x, t, reduction="sum") for _ in range(10)))

        self.assertEqual(set(asyncio.run(many())), {kldiv.kl_div(x, t, reduction="sum")})

    def test_asyncio_has_every_method(self):
        for plain, asynchronous in (kldiv.Client, kldiv.AsyncClient), (kldiv.Group, kldiv.AsyncGroup):
            public = {name for name, value in vars(plain).items() if callable(value) and not name.startswith("_")}
            self.assertEqual(public - set(vars(asynchronous)), set())
            for name in public - {"group"}:
                self.assertTrue(inspect.iscoroutinefunction(getattr(asynchronous, name)), name)

        async def every():
            table = {"x": [i % 7 * 1.5 for i in range(100)], "k": ["a", "b"] * 50}
            async with kldiv.AsyncClient(self.server.url) as client:
                group = client.group("asyncio")
                await group.reference(table)
                await group.observe(table)
                await group.evaluate(table)
                self.assertIn("k", await group.observe(iter([table, table])))
                for name, arguments in {"windows": ["x"], "events": [], "summary": [], "monitors": [], "latest": ["x"],
                                        "notes": []}.items():
                    await getattr(group, name)(*arguments)
                await group.settings("x", retention_days=np.int64(7))
                await group.mute(seconds=np.float64(60))
                await group.unmute()
                await group.delete_note(await group.note("text"))
                x, t = operands()
                self.assertEqual(await client.partial(x, t), self.client.partial(x, t))
                await client.value_and_grad(x, t)
                self.assertIn("asyncio", [row["group"] for row in await client.groups()])
                with (await client.region(4096)) as region:
                    self.assertEqual(region.size, 4096)
                await client.request("GET", "/groups")
                await group.delete()
                await client.close()

        asyncio.run(every())

    def test_tokens(self):
        path = os.path.join(self.server.directory, "tokens")
        with open(path, "w", encoding="ascii") as file:
            file.write("a-token-of-some-length-0123456789\n")
        server = Server("--auth-token-file", path)
        self.addCleanup(server.stop)
        with self.assertRaises(kldiv.ServiceError) as raised:
            kldiv.Client(server.url).kl_div([-1.0], [1.0])
        self.assertEqual((raised.exception.status, raised.exception.code), (401, "unauthorized"))
        self.assertEqual(kldiv.Client(server.url, "a-token-of-some-length-0123456789").kl_div([-1.0], [1.0]), 1)


class Repeats(unittest.TestCase):
    def ask(self, method, *connections, **arguments):
        script = Script(*connections)
        try:
            return script, kldiv.Client(script.url).request(method, "/x", **arguments)
        except kldiv.ServiceError as error:
            return script, error

    def test_connections_are_kept(self):
        script = Script([OK, OK])
        client = kldiv.Client(script.url)
        self.assertEqual([client.request("GET", "/a"), client.request("GET", "/b")], [{}, {}])

    def test_a_kept_connection_that_was_closed_is_not_used(self):
        script = Script([OK], [OK])
        client = kldiv.Client(script.url, retries=0)
        client.request("POST", "/a")
        while len(client.transport.idle) != 1 or _transport.is_quiet(client.transport.idle[0]):
            pass
        client.request("POST", "/b")
        self.assertEqual(script.requests, ["POST /a HTTP/1.1", "POST /b HTTP/1.1"])

    def test_what_may_be_repeated_is(self):
        busy = (503, "Retry-After: 0\r\n", '{"code": "overloaded"}')
        for method, arguments in ("GET", {}), ("PUT", {"json_body": {}}), ("POST", {"repeatable": True}):
            script, answer = self.ask(method, [None], [busy, OK], **arguments)
            self.assertEqual((answer, len(script.requests)), ({}, 3))

    def test_what_may_not_is_sent_once(self):
        script, answer = self.ask("POST", [None])
        self.assertEqual((answer.status, answer.code, len(script.requests)), (0, "unreachable", 1))
        script, answer = self.ask("POST", [(503, "Retry-After: 0\r\n", '{"code": "draining", "detail": "d"}'), OK])
        self.assertEqual((answer.status, answer.code, len(script.requests)), (503, "draining", 1))

    def test_errors_are_not_repeated(self):
        script, answer = self.ask("GET", [(404, "", '{"code": "not_found", "detail": "no"}'), OK])
        self.assertEqual((answer.code, len(script.requests)), ("not_found", 1))
        _, answer = self.ask("GET", [(418, "", "<html>teapot")])
        self.assertEqual((answer.code, answer.detail), ("http_418", "<html>teapot"))

    def test_it_waits_as_long_as_a_rollout(self):
        limited = (429, "Retry-After: 0\r\n", '{"code": "rate_limited", "detail": "x"}')
        script, answer = self.ask("GET", [limited, None], [(502, "", "<html>"), OK])
        self.assertEqual((answer, len(script.requests)), ({}, 4))
        script = Script()
        script.thread.join()
        began = time.monotonic()
        with mock.patch.object(_transport, "RETRY_SECONDS", 1.0), self.assertRaises(kldiv.ServiceError):
            kldiv.Client(script.url).request("GET", "/x")
        self.assertTrue(1 < time.monotonic() - began < 8)
        self.assertEqual(_transport.RETRY_SECONDS, 30)

    def test_pauses_grow_whatever_retry_after_says(self):
        pauses = []
        for asked in "0", "1":
            with mock.patch.object(_transport.time, "sleep", pauses.append):
                self.ask("GET", [(429, f"Retry-After: {asked}\r\n", '{"code": "rate_limited"}')] * 6 + [OK])
        least = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2] + [1, 1, 1, 1, 1.6, 3.2]
        self.assertTrue(len(pauses) == 12 and all(a <= b <= 1.25 * a for a, b in zip(least, pauses)), pauses)

    def test_what_is_not_the_service(self):
        page = "<html><h1>Sign in</h1> to <b>go on</b>"
        html = "Content-Type: text/html\r\n"
        for response, words in [((302, "Location: https://login.example/\r\n", ""), "login.example"),
                                ((200, html, page), "Sign in to go on"), ((200, "", "\0\1\2"), "answers"), ((304, "", ""), "answers"),
                                ((200, html, "x" * 100_000), "xxx"), ((200, html, "\xff\xfe"), "answers")]:
            for call in (lambda client: client.request("GET", "/x"), lambda client: client.kl_div([-1.0], [1.0]),
                         lambda client: client.group("g").monitors(), lambda client: client.group("g").evaluate({"x": [1]})):
                script = Script([response])
                with self.assertRaises(kldiv.ServiceError) as raised:
                    call(kldiv.Client(script.url))
                self.assertEqual((raised.exception.status, raised.exception.code), (response[0], "not_the_service"))
                for each in words, script.url:
                    self.assertIn(each, raised.exception.detail)
                self.assertLess(len(str(raised.exception)), 400)
        others = ["[]", "{}", '"text"', "1", "null", '{"monitors": {}}', '{"monitors": [1], "warnings": []}', '[{"next": null}]',
                  '{"monitors": [[]], "warnings": {}}', '{"next": 1, "groups": [], "windows": [], "events": [], "notes": []}',
                  '{"windows": [{"window": [1]}], "next": null}', '{"windows": [{"g_test": "x"}], "next": null}',
                  '{"monitors": [{"name": 1}], "warnings": [null]}', "[" * 100_000, '{"name": "m", "bins": {}, "revision": 1}']
        calls = [lambda client: client.groups(), lambda client: client.group("g").monitors(),
                 lambda client: client.group("g").reference({"x": [1.0, 2.0]}), lambda client: client.group("g").windows("m"),
                 lambda client: client.group("g").renew({"x": [1.0]}), lambda client: client.group("g").events(),
                 lambda client: client.group("g").notes(), lambda client: client.group("g").latest("m"),
                 lambda client: client.group("g").observe({"x": [1.0]}), lambda client: client.group("g").summary().sentence(),
                 lambda client: client.partial([-1.0], [1.0]), lambda client: client.value_and_grad([-1.0], [1.0])]
        for body, call in itertools.product(others, calls):
            with self.subTest(body=body[:80]), self.assertRaises(kldiv.ServiceError) as raised:
                call(kldiv.Client(Script([(200, "", body)]).url))
            self.assertEqual(raised.exception.code, "not_the_service")
        for body in *others, '{"code": 5}', '{"code": "x", "errors": [1]}', '{"code": "x", "detail": 1}', '{"error": []}':
            with self.assertRaises(kldiv.ServiceError) as raised:
                kldiv.Client(Script([(418, "Retry-After: \xb2\r\n", body)]).url).request("GET", "/x")
            self.assertEqual((raised.exception.status, raised.exception.code, raised.exception.pointer), (418, "http_418", None))
        answers = {True: [OK], False: [(200, html, page)], None: [(503, "Retry-After: 60\r\n", '{"code": "draining"}')]}
        for ready, response in answers.items():
            self.assertEqual(kldiv.Client(Script(response).url).ready(), bool(ready))
        script = Script()
        script.thread.join()
        self.assertFalse(kldiv.Client(script.url).ready())

    def test_connections_that_end_with_the_response(self):
        for size in 2, 1 << 20:
            body = '"' + "x" * size + '"'
            script = Script([(200, "Connection: close\r\n", body)], [OK])
            client = kldiv.Client(script.url)
            self.assertEqual(client.request("GET", "/x"), "x" * size)
            self.assertEqual((len(client.transport.idle), client.request("GET", "/y")), (0, {}))
        listener = socket.create_server(("127.0.0.1", 0))

        def until_closed():
            connection, _ = listener.accept()
            connection.recv(10_000)
            connection.sendall(b"HTTP/1.0 200 x\r\n\r\n[1, ")
            time.sleep(0.2)
            connection.sendall(b"2]")
            connection.close()

        threading.Thread(target=until_closed, daemon=True).start()
        self.assertEqual(kldiv.Client(f"http://127.0.0.1:{listener.getsockname()[1]}").request("GET", "/x"), [1, 2])
        listener.close()

    def test_a_trickle_is_bounded(self):
        for begin in b"HTTP/1.1 200 x\r\nContent-Length: 1000\r\n\r\n", b"":
            listener = socket.create_server(("127.0.0.1", 0))

            def trickle():
                connection, _ = listener.accept()
                with contextlib.suppress(OSError):
                    connection.sendall(begin)
                    for _ in range(100):
                        connection.sendall(b"H")
                        time.sleep(0.1)
                connection.close()

            threading.Thread(target=trickle, daemon=True).start()
            began = time.monotonic()
            with self.assertRaises(kldiv.ServiceError) as raised:
                kldiv.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.7, retries=0).request("GET", "/x")
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(raised.exception.code, "unreachable")
            listener.close()

    def test_errors_can_be_pickled(self):
        for error in (kldiv.LossError("a", "b", 3), kldiv.ServiceError(422, "c", "d", [{"pointer": "#/x"}], "id")):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(again), vars(again)), (str(error), vars(error)))
        with multiprocessing.get_context("fork").Pool(1) as pool, self.assertRaises(kldiv.LossError) as raised:
            pool.apply_async(kldiv.kl_div, ([-1.0], [1.0], None, None, "x")).get(30)
        self.assertEqual(raised.exception.code, "reduction_invalid")
        client = pickle.loads(pickle.dumps(kldiv.Client("http://127.0.0.1:9/x", "secret", timeout=3)))
        self.assertEqual((client.transport.url, client.transport.timeout), ("http://127.0.0.1:9/x", 3))

    def test_it_gives_up(self):
        script = Script()
        script.thread.join()
        with self.assertRaises(kldiv.ServiceError) as raised:
            kldiv.Client(script.url, retries=1).request("POST", "/x")
        self.assertEqual(raised.exception.code, "unreachable")

    def test_urls(self):
        for url in "127.0.0.1:8080", "ftp://x", "unix://x/y", "http:/x":
            self.assertRaises(ValueError, kldiv.Client, url)
        script = Script([OK])
        kldiv.Client(script.url + "/behind/a/prefix/").request("GET", "/x", {"a": [1, 2], "b": True, "c": None})
        self.assertEqual(script.requests, ["GET /behind/a/prefix/x?a=1%2C2&b=true HTTP/1.1"])


if __name__ == "__main__":
    unittest.main()
