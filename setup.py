"""Compile the market's hot path where a C compiler is at hand; without one the same files run interpreted.

Each module is plain Python; the .pxd file beside it gives Cython its C types.
"""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path("src/htfi/market")
HOT = ("regime", "samples", "book", "bars", "series", "kernel")

DIRECTIVES = {
    "annotation_typing": False,  # the .pxd files say what is typed
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
}

# No fused multiply-add: compiled and interpreted runs give the same bits on every machine.
FLAGS = ["-O2", "-g0", "-ffp-contract=off"]


class BuildAllOrNone(build_ext):
    """A compiled module needs the others compiled: where one fails, none is kept and the install goes on."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except Exception as error:  # noqa: BLE001 - whatever ails the compiler, interpreted is right, only slower
            self.warn(f"the market kernel will run interpreted, about 40 times slower: {error}")
            self.extensions = []
            for file in FOLDER.glob("*.so"):  # of an earlier build, now out of step
                file.unlink()


def extension(name: str) -> Extension:
    """One hot module, with its types."""
    sources, types = [str(FOLDER / f"{name}.py")], [str(FOLDER / f"{name}.pxd")]
    return Extension(f"htfi.market.{name}", sources, depends=types, extra_compile_args=FLAGS)


setup(
    ext_modules=cythonize(
        [extension(name) for name in HOT], language_level=3, compiler_directives=DIRECTIVES, quiet=True
    ),
    cmdclass={"build_ext": BuildAllOrNone},
    options={"build_ext": {"parallel": True}},
)
