"""The examples, run."""
import asyncio
import contextlib
import importlib
import io
import json
import os
import sys
import tempfile
import time
import types
import unittest
import warnings
from unittest import mock

import numpy as np
from service import Server

import kldiv

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "api", "clients", "python", "examples")
sys.path.insert(0, EXAMPLES)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = kldiv.Client(cls.server.url)
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)

    def file(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    def printed(self, function, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            value = function(*arguments)
        return value, output.getvalue()

    def test_nightly(self):
        import nightly
        rng = np.random.default_rng(1)
        self.client.group("sales").reference({"price": rng.normal(10, 2, 2000)})
        for day, mean in ("2026-01-01", 10), ("2026-01-02", 13):
            self.file(f"sales-{day}.csv", "price\n" + "".join(f"{v:.2f}\n" for v in rng.normal(mean, 2, 500)))
        pattern = os.path.join(self.directory.name, "sales-%s.csv")
        self.assertEqual(self.printed(nightly.main, self.server.url, "sales", pattern, "2026-01-01"), (0, ""))
        for _ in range(2):
            status, said = self.printed(nightly.main, self.server.url, "sales", pattern, "2026-01-02")
            self.assertEqual(status, 2)
            self.assertRegex(said, "^price: critical, 500 values; ")
        self.assertEqual(len(self.client.group("sales").windows("price")), 2)

    def test_middleware(self):
        import middleware
        rng = np.random.default_rng(2)
        group = self.client.group("model")
        group.reference({"age": rng.normal(40, 10, 1000), "plan": rng.choice(["a", "b"], 1000)})

        def application(environ, start_response):
            return [environ["wsgi.input"].read()]

        inputs = middleware.Inputs(group, seconds=3600, rows=300)
        observed = middleware.ObservedWSGI(application, inputs)
        for age in rng.normal(60, 10, 299):
            body = json.dumps({"age": age, "plan": "a", "nested": {}}).encode()
            self.assertEqual(observed({"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": len(body)}, None), [body])
        self.assertEqual(observed({"wsgi.input": io.BytesIO(b"no JSON"), "CONTENT_LENGTH": 7}, None), [b"no JSON"])
        large = io.BytesIO(b'{"age": 60}' + b" " * middleware.LARGEST)
        size = len(large.getvalue())
        self.assertEqual(len(observed({"wsgi.input": large, "CONTENT_LENGTH": size}, lambda *_: None)[0]), size)
        self.assertEqual(len(group.windows("age")), 0)
        inputs.keep(b'{"age": 60.0}')  # the thread sends 300
        deadline = time.monotonic() + 20
        while not len(group.windows("age")) and time.monotonic() < deadline:
            time.sleep(0.05)
        result = group.latest("age")
        self.assertEqual((result["n"], result.verdict), (300, "critical"))
        away = middleware.Inputs(kldiv.Client("http://127.0.0.1:9", retries=0).group("x"), 3600, rows=2)
        away.keep(b'{"age": 1}')
        self.assertIn("not observed: unreachable", self.printed(away.send)[1])
        away.keep(b'{"age": 2}')
        self.printed(away.send)
        self.assertEqual(([rows for _, rows in away.batches], away.kept), ([[{"age": 1}], [{"age": 2}]], []))
        for _ in range(4 * middleware.WAITING):
            away.keep(b'{"age": 3}')
            self.printed(away.send)
        self.assertEqual(len(away.batches), 2 * middleware.WAITING)

    def test_middleware_counts_once_if_a_response_is_lost(self):
        import middleware
        group = self.client.group("lost")
        group.reference({"age": np.random.default_rng(2).normal(40, 10, 1000)})
        inputs, observe, lost = middleware.Inputs(group, seconds=3600), group.observe, []

        def losing(*arguments, **named):
            results = observe(*arguments, **named)
            if not lost:
                lost.append(results)
                raise kldiv.ServiceError(0, "unreachable", "lost")
            return results

        with mock.patch.object(group, "observe", losing):
            for age in 40, 41, 42:
                inputs.keep(b'{"age": %d}' % age)
                self.printed(inputs.send)
        windows = group.windows("age")
        self.assertEqual((len(lost), sum(int(n) for n in (windows["n"] if hasattr(windows, "columns") else [w["n"] for w in windows]))),
                         (1, 3))

    def test_middleware_loses_no_good_rows(self):
        import middleware
        group = self.client.group("mixed")
        group.reference({"age": np.random.default_rng(2).normal(40, 10, 1000), "plan": ["a", "b"] * 500})
        inputs = middleware.Inputs(group, seconds=3600)
        for i in range(101):
            inputs.keep(json.dumps({"age": "many" if i in (3, 77) else i, "plan": "a"}).encode())
        inputs.keep(b'{"nested": {}}')
        said = self.printed(inputs.send)[1]
        self.assertEqual(said.count("an input is not observed: 422 value_not_number"), 2)
        self.assertEqual([group.latest(name)["n"] for name in ("age", "plan")], [100, 100])

    def test_middleware_of_fastapi(self):
        import middleware
        try:
            from fastapi import Body, FastAPI
        except ImportError:
            self.skipTest("python3-fastapi is not installed")
        group = self.client.group("served")
        group.reference({"age": np.random.default_rng(2).normal(40, 10, 1000)})
        inputs, app, sent = middleware.Inputs(group, seconds=3600), FastAPI(), []
        app.add_middleware(middleware.ObservedASGI, inputs=inputs)

        @app.post("/predict")
        def predict(age: float = Body(embed=True)):
            return age + 1

        async def request(body):
            parts = [{"type": "http.request", "body": part, "more_body": more} for part, more in ((body[:5], True), (body[5:], False))]
            headers = [(b"content-type", b"application/json")]
            scope = {"type": "http", "method": "POST", "path": "/predict", "raw_path": b"/predict", "query_string": b"",
                     "root_path": "", "headers": headers, "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"}

            async def receive():
                return parts.pop(0) if parts else await asyncio.Event().wait()

            async def send(message):
                sent.append(message)

            await app(scope, receive, send)

        async def requests():
            for _ in range(60):
                await request(b'{"age": 75}')
            await request(b'{"age": ')
            await request(b'{"age": 75}' + b" " * middleware.LARGEST)

        asyncio.run(requests())
        self.assertEqual([message["status"] for message in sent if "status" in message], 60 * [200] + [422, 200])
        self.assertEqual([message["body"] for message in sent if "body" in message][0], b"76.0")
        inputs.send()
        self.assertEqual((group.latest("age")["n"], group.latest("age").verdict), (60, "critical"))

    def test_distillation(self):
        try:
            import distillation
        except ImportError:
            self.skipTest("python3-torch is not installed")
        for divergence in "forward", "reverse", "js", "skew":
            here, there = (distillation.train(client, divergence) for client in (None, self.client))
            self.assertLess(here[-1], here[0] / 100)
            np.testing.assert_allclose(there[:20], here[:20], 1e-4)

    def test_topk_distillation(self):
        try:
            import topk_distillation
        except ImportError as error:
            self.skipTest(f"python3-torch and python3-sklearn are needed: {error}")
        (of_teacher, of_labels), said = self.printed(topk_distillation.main)
        self.assertRegex(said, r"(?s)^teacher, 256 hidden units: 0\.9.*stored: 3 of 10 classes of 1257 images, 11,313 bytes; .*50,280\n")
        self.assertGreater(of_teacher, 0.93)
        self.assertGreater(of_labels, 0.9)
        x, stored = np.eye(64, dtype="float32"), {"indices": np.arange(64)[:, None] % 10, "values": np.full((64, 1), -0.5)}
        students = [topk_distillation.train(x, stored, epochs=2) for _ in range(2)]
        for first, again in zip(*(student.parameters() for student in students)):
            self.assertTrue((first == again).all())

    def with_package(self, name, **members):
        """A package, or a stand-in that has these members."""
        try:
            return importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed: its example runs with a stand-in, itself it is NOT TESTED")
        patched = {}
        for path, member in members.items():
            parts = path.split(".")
            for i in range(len(parts)):
                patched.setdefault(".".join([name, *parts[:i]]), types.ModuleType(name))
            setattr(patched[".".join([name, *parts[:-1]])], parts[-1], member)
        patcher = mock.patch.dict(sys.modules, patched)
        patcher.start()
        self.addCleanup(patcher.stop)
        return patched[name]

    def test_mlflow(self):
        metrics, pages = {}, []
        mlflow = self.with_package("mlflow", log_metrics=metrics.update, log_artifact=lambda path: pages.append(
            os.path.getsize(path)), start_run=contextlib.nullcontext)
        from with_mlflow import log_drift
        group = self.client.group("mlflow")
        table = {"length (cm)": np.random.default_rng(1).normal(size=1000), "k": ["a", "b"] * 500}
        group.reference(table)
        with mlflow.start_run():
            self.assertEqual(len(log_drift(group, table)), 2)
        if metrics:  # of the stand-in
            self.assertEqual((set(metrics), len(pages)), ({"kl/length _cm_", "kl/k"}, 1))

    def test_airflow(self):
        self.with_package("airflow", **{"decorators.task": lambda function: function,
                                        "exceptions.AirflowFailException": type("Fail", (Exception,), {})})
        from with_airflow import check_drift
        run = getattr(check_drift, "function", check_drift)
        self.client.group("flow").reference({"price": np.random.default_rng(1).normal(10, 2, 2000)})
        for mean in 10, 15:
            values = np.random.default_rng(mean).normal(mean, 2, 500)
            path = self.file(f"flow-{mean}.csv", "price\n" + "".join(f"{v:.2f}\n" for v in values))
            if mean == 10:
                self.assertEqual(run(self.server.url, "flow", path), {"price": "ok"})
            else:
                with self.assertRaisesRegex(sys.modules["airflow.exceptions"].AirflowFailException, "^price: critical"):
                    run(self.server.url, "flow", path)

    def test_lightning_and_transformers(self):
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")

        class Trainer:
            def __init__(self, model):
                self.model = model

        class Model(torch.nn.Linear):
            def forward(self, x=None, labels=None):
                logits = super().forward(x)
                return logits if labels is None else types.SimpleNamespace(logits=logits)

        logged = []
        self.with_package("lightning", LightningModule=type("LightningModule", (torch.nn.Module,), {
            "log": lambda self, name, value: logged.append(name)}))
        real = self.with_package("transformers", Trainer=Trainer).Trainer is not Trainer
        from with_lightning import Distilled
        from with_transformers import DistillationTrainer
        student, teacher = Model(4, 6), Model(4, 6)
        x, labels = torch.randn(2, 3, 4), torch.tensor([[1, 2, -100], [3, -100, 0]])
        module = Distilled(student, teacher)
        if "torch" not in sys.modules["lightning"].__dict__:  # the stand-in, which has no trainer
            optimizer = module.configure_optimizers()
            losses = []
            for _ in range(200):
                optimizer.zero_grad()
                loss = module.training_step([x], 0)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            self.assertLess(losses[-1], losses[0] / 5)
        if not real:
            trainer = DistillationTrainer(student, teacher=teacher)
            loss, outputs = trainer.compute_loss(student, {"x": x, "labels": labels}, return_outputs=True)
            rows = labels != -100
            expected = kldiv.kl_div(outputs.logits[rows], teacher(x)[rows], input_space="logit", target_space="logit",
                                    temperature=2.0, dim=-1)
            torch.testing.assert_close(loss, expected)

    def test_prometheus_histogram(self):
        import prometheus_histogram as example
        bounds = ["0.1", "0.2", "0.5", "1", "+Inf"]

        def lines(values):
            return "# TYPE latency histogram\n" + "".join(
                f'latency_bucket{{path="/",le="{b}"}} {sum(v <= float(b) for v in values)}\n' for b in bounds)

        rng = np.random.default_rng(3)
        old = rng.exponential(0.3, 2000).tolist() + [0.1, 0.2, 0.5, 1.0]
        new = old + rng.exponential(0.6, 500).tolist() + [0.1, 0.2, 0.5, 1.0]
        before, after = self.file("before.txt", lines(old)), self.file("after.txt", lines(new))
        _, said = self.printed(example.main, self.server.url, "web", "latency", before, after)
        self.assertRegex(said, "^critical 0")
        # The same as from the values themselves, edges included.
        alone = self.client.request("POST", "/monitors/web/latency/evaluate", json_body={"values": new[len(old):]})
        self.assertEqual(float(said.split()[1]), alone["kl"])
        reference = self.client.request("GET", "/monitors/web/latency")["reference"]
        self.assertEqual(reference["underflow"], sum(v <= 0.1 for v in old))
        self.assertRaises(ValueError, example.counts, {1.0: 3, 2.0: 2, float("inf"): 4})


if __name__ == "__main__":
    unittest.main()
