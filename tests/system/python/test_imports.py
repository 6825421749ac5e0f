"""No file of the package imports one that imports it."""
import pathlib
import re
import unittest

import kldiv

FOLDER = pathlib.Path(kldiv.__file__).parent


def imports_of(path):
    text = path.read_text()
    named = re.findall(r"^\s*from \.(\w+) import", text, re.M)
    for names in re.findall(r"^\s*from \. import ([\w, ]+)", text, re.M):
        named += re.split(", *", names)
    return named


class Imports(unittest.TestCase):
    def test_have_no_circle(self):
        imports = {path.stem: imports_of(path) for path in FOLDER.glob("*.py")}
        self.assertIn("_library", imports["loss"])

        def reach(name, seen):
            for other in imports.get(name, ()):
                if other not in seen:
                    seen.add(other)
                    reach(other, seen)
            return seen

        for name in imports:
            self.assertNotIn(name, reach(name, set()))


if __name__ == "__main__":
    unittest.main()
