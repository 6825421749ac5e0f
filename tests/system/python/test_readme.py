"""The lines of the package's README about a table, and those of the page on all languages."""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
from service import Server

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "api", "clients", "python", "README.md")


class Readme(unittest.TestCase):
    def test_five_lines_give_a_verdict(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("python3-pandas is not installed")
        with open(README, encoding="utf-8") as file:
            code = re.search(r"<!-- five lines -->\n((?:    .*\n)+)", file.read())[1]
        lines = [line[4:] for line in code.splitlines()]
        self.assertEqual(len(lines), 5)
        server, before = Server(), os.getcwd()
        rng = np.random.default_rng(1)
        with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
            warnings.simplefilter("error")
            os.chdir(directory)
            try:
                for name, n, mean in ("train", 5000, 40), ("today", 500, 55):
                    pandas.DataFrame({"age": rng.normal(mean, 10, n).round(2),
                                      "country": rng.choice(["de", "fr", "it"], n)}).to_csv(f"{name}.csv", index=False)
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec("\n".join(lines).replace("http://127.0.0.1:8080", server.url), {})
            finally:
                os.chdir(before)
                server.stop()
        self.assertRegex(printed.getvalue(), r"^1 of 2 columns drifts\n\ncolumn .*\nage +critical .*\ncountry +ok ")

    def test_two_files(self):
        """The commands that README.md begins with print what it says."""
        with open(os.path.join(os.path.dirname(README), "..", "..", "..", "README.md"), encoding="utf-8") as file:
            block = re.search(r"<!-- two files -->\n((?:    .*\n|\n(?=    ))+)", file.read())[1]
        lines = [line[4:] for line in block.splitlines()]
        commands, said = [line[2:] for line in lines if line.startswith("$ ")], [line for line in lines if not line.startswith("$ ")]
        with tempfile.TemporaryDirectory() as directory:
            shell = f'kldiv() {{ "{sys.executable}" -m kldiv "$@"; }}\n' + "\n".join(commands)
            ran = subprocess.run(["bash", "-c", shell], cwd=directory, capture_output=True, text=True, timeout=60)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (2, "\n".join(said) + "\n", ""))
            self.assertIn("report.html", os.listdir(directory))

    def test_the_lines_of_the_page_on_all_languages(self):
        with open(os.path.join(os.path.dirname(README), "..", "README.md"), encoding="utf-8") as file:
            code = re.search(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)[1]
        server = Server()
        self.addCleanup(server.stop)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code.replace("http://127.0.0.1:8080", server.url), {})
        self.assertRegex(printed.getvalue(), "^0.247258")


if __name__ == "__main__":
    unittest.main()
