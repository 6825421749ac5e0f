"""Whole tables as bodies, and two of them as a form."""
from __future__ import annotations

import gzip
import sys
import uuid
import zlib
from pathlib import Path
from typing import Any

from ._tables import encode_reference
from ._transport import Body, Buffer
from .columns import Selection
from .sources import TEXT_TYPES, Progress, Sample, batches, check_encoding, is_path, suffix_of, text_suffix

GZIP = b"\x1f\x8b"
EVERYTHING = Selection(None, None)


def plain_text(body: bytes, name: str, encoding: str | None) -> bytes:
    """Unpacked, and as UTF-8 if the encoding is another one."""
    try:
        body = gzip.decompress(body) if body.startswith(GZIP) else body
        return body.decode(encoding).encode() if encoding else body
    except (UnicodeError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name}: {error}") from None


def whole_table(data: Any, encoding: str | None) -> tuple[str, Body]:
    """A table in one body, and its media type; "" where its first bytes tell the format."""
    check_encoding(encoding)
    if is_path(data) and text_suffix(Path(data)) in TEXT_TYPES:
        return TEXT_TYPES[text_suffix(Path(data))], [plain_text(Path(data).read_bytes(), str(data), encoding)]
    if is_path(data) and suffix_of(Path(data)) == ".npz":
        return "application/x-npz", [Path(data).read_bytes()]
    if hasattr(data, "read"):
        return "", [plain_text(getattr(data, "buffer", data).read(), getattr(data, "name", "the file"), encoding)]
    rows = Sample(sys.maxsize, 0)
    for batch in batches(data, Progress(False), EVERYTHING, encoding):
        rows.add(batch)
    columns = rows.columns()
    if not rows.media_type:
        return encode_reference(columns)
    (header, records), = columns.items()
    return rows.media_type, [header.encode(errors="surrogateescape"), *records]


def form(files: dict[str, tuple[str, Body]]) -> tuple[str, list[Buffer]]:
    """multipart/form-data of tables, by name."""
    boundary, parts = uuid.uuid4().hex, list[Buffer]()
    for name, (media_type, body) in files.items():
        kind = f"Content-Type: {media_type}\r\n" if media_type else ""
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n{kind}\r\n'
        assert not isinstance(body, Path)
        parts += [head.encode(), *body, b"\r\n"]
    return f"multipart/form-data; boundary={boundary}", [*parts, f"--{boundary}--\r\n".encode()]
