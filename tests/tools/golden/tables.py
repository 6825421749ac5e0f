"""CSV of awkward shapes, with what Python's csv module reads: tables.jsonl, for tests/suites/tables/golden.c.

"refused" are quoted fields that go on behind their quote, which Python takes as they stand and RFC 4180 forbids, those
that do not end, and rows of unequal length. Rows of delimiters only are blank lines.
"""
import base64
import csv
import io
import itertools
import json

PIECES = ["x", "", " ", "1.5", '"', '""', '"x"', '"x,y"', '"x\ny"', '"x\r\ny"', '"a""b"', " y ", "\u00e9", '"\u6c34;"',
          "'", "\\", '"\t"', '" "', 'x"y', '21"', ' "z"']
NAMES = {",": "a,b", ";": "a;b", "\t": "a\tb"}


def rows_of(text, delimiter):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def is_clean(field):
    """False for a quoted field that goes on, which Python takes as it stands."""
    return not field.startswith('"') or (field.startswith('"') and field.endswith('"') and len(field) > 1
                                and '"' not in field[1:-1].replace('""', ""))


def main():
    for (delimiter, header), end in itertools.product(NAMES.items(), ("\n", "\r\n", "\r")):
        for i, (left, right) in enumerate(itertools.product(PIECES, PIECES)):
            if (i + len(end) + ord(delimiter)) % 3:
                continue
            text = header + end + left + delimiter + right + end * (1 + i % 2) + "p" + delimiter + "q"
            text += end if i % 4 < 2 else ""
            row = dict(body=base64.b64encode(text.encode()).decode())
            try:
                rows = [row for row in rows_of(text, delimiter)[1:] if row]
                rows = rows if left or right else rows[1:]
                good = is_clean(left) and is_clean(right) and all(len(row) == 2 for row in rows)
            except csv.Error:
                good = False
            row.update(dict(columns=list(map(list, zip(*rows)))) if good else dict(refused=True))
            print(json.dumps(row))


main()
