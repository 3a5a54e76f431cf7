"""Compile the market's hot path where a C compiler is at hand; without one the same files run interpreted.

Each module is plain Python; the .pxd file beside it gives Cython its C types.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

HOT = ("regime", "samples", "book", "bars", "series", "kernel")

DIRECTIVES = {
    "annotation_typing": False,  # the .pxd files say what is typed
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
}

# No fused multiply-add: compiled and interpreted runs give the same bits on every machine.
FLAGS = ["-O2", "-ffp-contract=off"]

EXTENSIONS = [
    Extension(f"htfi.market.{name}", [f"src/htfi/market/{name}.py"], extra_compile_args=FLAGS, optional=True)
    for name in HOT
]
setup(ext_modules=cythonize(EXTENSIONS, language_level=3, compiler_directives=DIRECTIVES, quiet=True))
