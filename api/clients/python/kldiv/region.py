"""Shared memory of this host, whose arrays the service reads where they lie."""
from __future__ import annotations

import mmap
import os
import uuid
from types import TracebackType
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Array
from ._transport import Transport

ALIGNMENT = 64


class Region:
    """A POSIX shared memory object, registered at the service, until close(). Client.region makes it."""

    def __init__(self, transport: Transport, size: int, prefix: str, mode: int) -> None:
        self._transport = transport
        self.name, self.size, self._used = f"{prefix}{uuid.uuid4().hex}", size, 0
        self._path = f"/dev/shm/{self.name}"
        descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        try:
            os.fchmod(descriptor, mode)  # whatever the umask is
            os.posix_fallocate(descriptor, 0, size)
            self._memory = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
            transport.request("POST", self._url("register"), body=[
                b'{"key": "/%s", "offset": 0, "byte_size": %d}' % (self.name.encode(), size)])
        except BaseException:
            os.unlink(self._path)
            raise
        finally:
            os.close(descriptor)

    def _url(self, verb: str) -> str:
        return f"/v2/systemsharedmemory/region/{self.name}/{verb}"

    def empty(self, shape: int | tuple[int, ...], dtype: str = "float32") -> Any:
        """A new array of numpy in the region. For PyTorch: torch.from_numpy of it. It is not freed alone."""
        n = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n < 0:
            raise ValueError(f"an array cannot have the shape {shape}")
        begin = -(-self._used // ALIGNMENT) * ALIGNMENT
        if begin + n > self.size:
            raise MemoryError(f"the region of {self.size} bytes has {self.size - begin} left, not {n}")
        self._used = begin + n
        return self._memory[begin:begin + n].view(dtype).reshape(shape)

    def array(self, values: Any) -> Any:
        """A copy of an array in the region. That of a tensor of bfloat16, which numpy lacks, is a tensor."""
        if _arrays.is_tensor(values) and str(values.dtype) == "torch.bfloat16":
            torch = _arrays.torch_module()
            words = self.array(_arrays.resolved(values).view(torch.int16))
            return torch.from_numpy(words).view(torch.bfloat16)
        values = _arrays.as_numpy(values)
        copy = self.empty(values.shape, values.dtype.name)
        copy[...] = values
        return copy

    def offset(self, array: Array, size: int) -> int | None:
        """The position of an array in the region, if it is there as a whole."""
        offset = array.pointer - int(self._memory.ctypes.data)
        return offset if 0 <= offset and offset + size <= self.size else None

    def close(self) -> None:
        """Unregisters the region. Arrays in it stay readable here until they are dropped."""
        if os.path.exists(self._path):
            os.unlink(self._path)
            self._transport.request("POST", self._url("unregister"), repeatable=True)

    def __enter__(self) -> Region:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
