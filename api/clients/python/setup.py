"""Puts libkldiv.so.1 into the package, so that a wheel serves any Python 3 of its platform.

KLDIV_BUILT_LIBRARY names a library that is built already (make wheel); without it the C sources are compiled, which
are in the source distribution, and two folders above in the repository. KLDIV_BUILT_SERVER names the program kldivd, which
compares two files; without it the package uses one that is installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE if (HERE / "lib").is_dir() else HERE.parents[2]


def compile_library(to):
    sources = [str(path) for path in sorted((ROOT / "lib").glob("**/*.c"))]
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-fPIC",
                    "-fvisibility=hidden", "-shared", f"-I{ROOT}", "-Wl,-soname,libkldiv.so.1",
                    f"-Wl,--version-script={ROOT / 'lib' / 'kldiv.map'}", *sources, "-lm", "-pthread", "-o", str(to)],
                   check=True)


class Build(build_py):
    def run(self):
        super().run()
        to = pathlib.Path(self.build_lib) / "kldiv" / "libkldiv.so.1"
        built = os.environ.get("KLDIV_BUILT_LIBRARY")
        if built:
            shutil.copyfile(built, to)
            if os.environ.get("KLDIV_BUILT_SERVER"):
                shutil.copy(os.environ["KLDIV_BUILT_SERVER"], to.with_name("kldivd"))
        elif sys.platform.startswith("linux"):  # elsewhere the client alone
            compile_library(to)


class WithLibrary(Distribution):
    """Not the same files on all platforms."""

    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """Any Python 3, one platform: KLDIV_PLATFORM, or that of this Python."""

    def get_tag(self):
        platform = os.environ.get("KLDIV_PLATFORM") or sysconfig.get_platform()
        return "py3", "none", platform.replace("-", "_").replace(".", "_")


setup(distclass=WithLibrary, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
