"""The client of the service."""
from __future__ import annotations

import functools
import json
import warnings
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, Sequence, Tuple

import numpy as np

from . import _arrays, _wire
from ._call import SHARES, axes_of, flag, number, truth, wanted_of
from ._labels import align
from ._service import Service
from ._transport import Response, Transport, page_of
from .comparison import compare_tables
from .errors import ServiceError
from .group import Group
from .region import Region
from .results import Results

Parser = Callable[[bytes, bool], Tuple[Dict[str, Any], Dict[str, str]]]  # of a body: its tensors, and its metadata


class Client(Service):
    """A service at http://HOST:PORT, https://HOST or unix:PATH, with a path before its own if it stands behind one.

    Connections are kept. A request that may be repeated is, for 30 s, or `retries` times. A response may take `timeout`
    seconds. Threads may share a client."""

    def __init__(self, url: str = "http://127.0.0.1:8080", token: str | None = None, *, ca_file: str | None = None,
                 timeout: float = 60.0, retries: int | None = None) -> None:
        super().__init__(Transport(url, token, ca_file, timeout, retries))
        self._regions: weakref.WeakSet[Region] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<kldiv.Client of {self.transport.url}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled it is a client of the same service, without connections and regions."""
        return functools.partial(Client, **self.transport.arguments), ()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections. The client can still be used."""
        self.transport.close()

    def ready(self) -> bool:
        """Does the service take requests? False also if nothing, or something else, answers."""
        try:
            self.transport.request("GET", "/readyz", retries=0).json(dict)
            return True
        except ServiceError:
            return False

    def group(self, name: str) -> Group:
        """The monitors of a group, which need not exist yet."""
        return Group(self, name)

    def groups(self) -> list[dict[str, Any]]:
        """All groups, worst first."""
        rows: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = self.request("GET", "/groups", {"limit": 1000, "cursor": cursor}, expected=page_of("groups"))
            rows += page["groups"]
            cursor = page["next"]
            if cursor is None:
                return rows

    def compare(self, reference: Any, current: Any, *, encoding: str | None = None, **settings: Any) -> Results:
        """Scores each column of a table against the column of the same name of another, and stores nothing. Tables are those
        that Group.observe takes. Settings are those of a reference which make bins and verdicts: critical=0.2, include="age"."""
        return compare_tables(self.transport, reference, current, encoding, settings)

    def region(self, size: int, prefix: str = "kldiv_", mode: int = 0o600) -> Region:
        """`size` bytes of shared memory, for a service on this host that was started with --shared-memory PREFIX.
        Losses of its arrays travel without them. A service of another user needs a mode by which it may read."""
        region = Region(self.transport, size, prefix, mode)
        self._regions.add(region)
        return region

    def kl_div(self, input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
               reduction: str = "mean", log_target: bool = False, *, weight: Any = None, mask: Any = None,
               **options: Any) -> Any:
        """What kldiv.kl_div gives, computed by the service. Further options are those of api/loss/README.md."""
        options.update(size_average=size_average, reduce=reduce, reduction=reduction, log_target=log_target)
        return self._call({"input": input, "target": target, "weight": weight, "mask": mask}, options)["loss"]

    def sparse_kl_div(self, input: Any, indices: Any, values: Any, *, log_normalizer: Any = None, weight: Any = None,
                      mask: Any = None, **options: Any) -> Any:
        """What kldiv.sparse_kl_div gives, computed by the service."""
        if indices is None:
            raise TypeError("indices are integers, not None")
        return self._call({"input": input, "target": values, "indices": indices, "log_normalizer": log_normalizer,
                           "weight": weight, "mask": mask}, options)["loss"]

    def value_and_grad(self, input: Any, target: Any, wrt: str | Sequence[str] = "input", grad_output: Any = None,
                       *, weight: Any = None, mask: Any = None, indices: Any = None, log_normalizer: Any = None,
                       **options: Any) -> tuple[Any, dict[str, Any]]:
        """The loss, and its gradients by name, as kldiv.value_and_grad gives them. With tensors of PyTorch,
        input.backward(grads["input"]) continues the gradient into a model."""
        names = wanted_of(wrt)
        results = self._call({"input": input, "target": target, "weight": weight, "mask": mask, "indices": indices,
                              "log_normalizer": log_normalizer, "grad_output": grad_output}, {**options, "gradient": names})
        return results["loss"], {name: results[f"gradient.{name}"] for name in names}

    def partial(self, input: Any, target: Any, *, weight: Any = None, mask: Any = None, indices: Any = None,
                log_normalizer: Any = None, **options: Any) -> tuple[tuple[float, float], tuple[float, float]]:
        """Sum and divisor of a shard, each a number and its rounding error, which merge by math.fsum."""
        results = self._call({"input": input, "target": target, "weight": weight, "mask": mask, "indices": indices,
                              "log_normalizer": log_normalizer}, {**options, "partial": True})
        high_low = [tuple(float(v) for v in results[name]) for name in ("sum", "divisor")]
        return high_low[0], high_low[1]  # type: ignore[return-value]

    def _call(self, tensors: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        as_tensor = any(_arrays.is_tensor(tensors[name]) for name in ("input", "target"))
        _arrays.refuse_learned(weight=tensors["weight"], temperature=options.get("temperature"),
                               log_normalizer=tensors.get("log_normalizer"))
        check_types(options)
        values, labels = align(tensors, options.get("dim"))
        readers = {"mask": _arrays.read_mask, "indices": _arrays.read_indices}
        arrays = {name: readers.get(name, _arrays.read)(value) for name, value in values.items()}
        shared = {name: place for name, array in arrays.items() if (place := self._place(name, array))}
        shapes: dict[str, Any] = {"sum": (2,), "divisor": (2,)} if options.get("partial") else {
            "loss": None, **{f"gradient.{name}": arrays[name].shape for name in gradients_of(options)}}
        send = self._infer if shared and not options.get("partial") else self._post
        response, parse = send(arrays, shared, options)

        def read(body: bytes) -> tuple[dict[str, Any], list[str]]:
            found, metadata = parse(body, as_tensor)
            if any(shape not in (None, tuple(found[name].shape)) for name, shape in shapes.items()):
                raise ValueError("a result of another shape")
            return {name: found[name] for name in shapes}, [each["message"] for each in json.loads(metadata.get("warnings", "[]"))]

        results, messages = response.read(read)
        for message in messages:
            warnings.warn(message, UserWarning, 3)
        if labels and not options.get("partial"):
            results = {name: labels.gradient(name[9:], value) if name.startswith("gradient.") else labels.loss(value)
                       for name, value in results.items()}
        return {name: value if as_tensor or value.shape else value[()] for name, value in results.items()}

    def _place(self, name: str, array: _arrays.Array) -> dict[str, Any] | None:
        size = _wire.size_of(name, array)
        for region in self._regions:
            offset = region.offset(array, size)
            if offset is not None:
                return {"shared_memory_region": region.name, "shared_memory_offset": offset,
                        "shared_memory_byte_size": size}
        return None

    def _post(self, arrays: dict[str, _arrays.Array], _: Any, options: dict[str, Any]) -> tuple[Response, Parser]:
        return self.transport.request(
            "POST", "/kl_div", options, {"Content-Type": _wire.SAFETENSORS, "Accept": _wire.SAFETENSORS},
            _wire.safetensors(arrays), repeatable=True), _wire.read_safetensors

    def _infer(self, arrays: dict[str, _arrays.Array], shared: dict[str, dict[str, Any]],
               options: dict[str, Any]) -> tuple[Response, Parser]:
        inputs, parts = [], []
        for name, array in arrays.items():
            datatype = _wire.type_name(name, array, _wire.INFERENCE_TYPES)
            parameters = shared.get(name)
            if parameters is None:
                parts.append(_wire.bytes_of(array, _wire.size_of(name, array)))
                parameters = {"binary_data_size": len(parts[-1])}
            inputs.append({"name": name, "datatype": datatype, "shape": list(array.shape), "parameters": parameters})
        outputs = [{"name": "loss"}] + [{"name": f"gradient.{name}"} for name in gradients_of(options)]
        header = json.dumps({"inputs": inputs, "outputs": outputs, "parameters": {"binary_data_output": True}}).encode()
        response = self.transport.request(
            "POST", "/v2/models/kl_div/infer", options,
            {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))},
            [header, *parts], repeatable=True)
        size = response.headers.get("Inference-Header-Content-Length", str(len(response.body)))
        return response, lambda body, as_tensor: _wire.read_inference(body, int(size), as_tensor)


def gradients_of(options: dict[str, Any]) -> list[str]:
    """The operands whose gradients are asked for."""
    given = options.get("gradient") or ()
    return wanted_of(given.split(",") if isinstance(given, str) else given) if given else []


def check_types(options: dict[str, Any]) -> None:
    """Options of the wrong type are refused here as by kldiv.kl_div: as texts of a query some would do."""
    for name in {"log_target", "broadcast", "diagnose"} & set(options):
        truth(name, options[name])
    for name in "size_average", "reduce":
        flag(name, options.get(name))
    for name in SHARES:
        number(name, options.get(name))
    if options.get("reduction", "mean") is None:
        raise ValueError("None is not a valid value for reduction")
    if options.get("dim") is not None:
        axes_of(options["dim"])
