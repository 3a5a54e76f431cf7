"""Compile the market kernel where a C compiler is at hand; without one the same file runs interpreted."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNEL = Extension(
    "htfi.market.kernel",
    ["src/htfi/market/kernel.py"],
    # No fused multiply-add: compiled and interpreted runs give the same bits on every machine.
    extra_compile_args=["-O2", "-ffp-contract=off"],
    optional=True,
)
setup(ext_modules=cythonize([KERNEL], language_level=3, quiet=True))
