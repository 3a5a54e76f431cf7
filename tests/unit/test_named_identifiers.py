"""What docstrings, comments and docs pages name in backticks is defined somewhere in the tree."""

import ast
import builtins
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from syntax_nodes import nodes

ROOT = Path(__file__).parents[2]
CODE = ("src/htfi", "evaluation/src/htfi_eval", "training/src/htfi_train")
SOURCES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for folder in CODE
    for path in sorted((ROOT / folder).rglob("*.py"))
}
PAGES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for pattern in ("docs/*.md", "docs/decisions/*.md", "README.md", "evaluation/*.md", "training/*.md")
    for path in sorted(ROOT.glob(pattern))
}
FILES = [
    path.relative_to(ROOT)
    for folder in ("src", "evaluation", "training", "tests", "docs", "examples", "corpora", "deploy")
    for path in (ROOT / folder).rglob("*")
    if "__pycache__" not in path.parts
] + [Path(path.name) for path in ROOT.iterdir()]
# Each file by every end of its path: `config.py`, `governance/config.py`, …
PATHS = {"/".join(path.parts[start:]) for path in FILES for start in range(len(path.parts))}
STEMS = {path.stem for path in FILES if path.parts[:2] == ("tests", "data")}

QUOTED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"_{0,2}[A-Za-z]\w*(?:\.\w+)*\Z")
FILE = re.compile(r"[\w./-]+\.(?:py|c|toml)\Z|[\w.-]+/[\w./-]+/\Z")
RAISES = re.compile(r"\bRaises:? ([^.:;(]+)")
# Names of formats and of other programs; every other name has to be ours.
FOREIGN = {
    "PERIOD_M15": "MetaTrader's code of a bar's length",
    "H4": "MetaTrader's code of a bar's length",
    "TIMEFRAME_": "MetaTrader's prefix",
    "PERIOD_": "MetaTrader's prefix",
    "max_": "a prefix of names",
    "min_": "a prefix of names",
    "Tentative": "a vendor's word for a time that is not known",
    "OUT": "the folder that a command is given",
    "rv_1s": "a feature whose name carries its window",
    "rv_300s": "a feature whose name carries its window",
    "h1_q05": "a column whose name carries horizon and level",
    "h5_q95": "a column whose name carries horizon and level",
    "signing.key": "a file of a run's folder",
    "company_tickers.json": "the SEC's file",
    "arch.data.sp500": "the data of another library",
    "CliRunner": "a class of click",
    "cond": "a column of TAQ",
    "NATS_USER": "a variable of the command nats",
    "NATS_PASSWORD": "a variable of the command nats",
    "NATS_TOKEN": "a variable of the command nats",
    "NATS_CREDS": "a variable of the command nats",
    "NATS_NKEY": "a variable of the command nats",
    "NATS_CA": "a variable of the command nats",
    "NATS_CERT": "a variable of the command nats",
    "NATS_KEY": "a variable of the command nats",
    "KAFKA_USER": "a variable of the environment",
    "KAFKA_PASSWORD": "a variable of the environment",
    "KAFKA_MECHANISM": "a variable of the environment",
    "KAFKA_CA": "a variable of the environment",
    "KAFKA_CERT": "a variable of the environment",
    "KAFKA_KEY": "a variable of the environment",
    "retention.ms": "a setting of a topic of Kafka",
    "tokenizer_config.json": "a file of Hugging Face",
    "max_bytes": "a bound of a JetStream stream",
    "max_payload": "a bound of nats-server",
    "BRK.B": "a symbol with a dot",
    "htfi.decisions.SYMBOL.INTERVAL": "a subject of NATS",
    "PREFIX.deleted": "a subject of NATS",
    "publish_async": "a method of nats-py",
    "outputSchema": "a field of MCP",
    "Origin": "a header of HTTP",
    "RateLimit": "a header of HTTP",
    "nbf": "a claim of JWT",
    "RUN_KEY": "the key that a reader puts in",
    "process_cpu_seconds_total": "a metric of prometheus_client",
    "process_resident_memory_bytes": "a metric of prometheus_client",
    "Open": "a frame's name",
    "OTEL_EXPORTER_OTLP_HEADERS": "a variable of OpenTelemetry",
    "promtool": "a program of Prometheus",
    "Containerfile.dockerignore": "the name that docker looks for",
    "BASE": "an argument of the image's build",
    "clouds.minAvailable": "a value of the chart",
    "networkPolicy.clients": "a value of the chart",
    "networkPolicy.feeds": "a value of the chart",
    "hardwareClasses": "a value of the chart",
    "desk.hardwareClass": "a value of the chart",
    "clouds.hardwareClass": "a value of the chart",
    "without_each_item": "an argument of a tool for agents",
    "repeat.py": "the file that the page shows how to add",
}
# Words after "Raises" that no class bears.
PROSE = frozenset({"Weights", "Unicode", "NaN", "URL", "RFC"})
FRAMES = Path("docs/protocol.md")  # writes a frame's name without the "Frame" of its class
TESTS = Path("docs/tests.md")


def kinds_of_events() -> Iterator[str]:
    """The kinds of a calendar's events, with the country that a rule leaves open, and without."""
    rules = tomllib.loads((ROOT / "src" / "htfi" / "calendar" / "kinds.toml").read_text(encoding="utf-8"))
    for rule in rules["rule"]:
        kind = rule["kind"]
        yield from (kind.replace("{country}", country) for country in ("", *rules["countries"]))


class Definitions:
    """What the packages define: names anywhere, members of classes, and names local to a file."""

    def __init__(self) -> None:
        self.names: set[str] = set(dir(builtins))
        self.local: dict[Path, set[str]] = {}
        self.members: dict[str, set[str]] = defaultdict(set)
        self.bases: dict[str, set[str]] = defaultdict(set)
        self.docstrings: list[tuple[Path, int, str]] = []  # file, line, text
        self.names |= set(kinds_of_events())
        for path, text in SOURCES.items():
            self.names.update(part.removesuffix(".py") for part in path.parts)
            self.local[path] = self._add(path, ast.parse(text))
        self.local[FRAMES] = {name.removesuffix("Frame") for name in self.members if name.endswith("Frame")}
        self.local[TESTS] = {
            word
            for path in [*(ROOT / "tests").glob("*.py"), *(ROOT / "tests").glob("*/conftest.py")]
            for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
        }

    def _add(self, path: Path, tree: ast.Module) -> set[str]:
        local: set[str] = set()
        names = self.names
        for owner in nodes(tree):
            if isinstance(owner, ast.ClassDef):
                names.add(owner.name)
                self._add_class(owner)
            elif isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(owner.name)
            elif isinstance(owner, ast.Attribute):
                names.add(owner.attr)
            elif isinstance(owner, ast.arg):
                local.add(owner.arg)
            elif isinstance(owner, ast.keyword):
                names.add(owner.arg or "")
            elif isinstance(owner, ast.ImportFrom):
                names.update((owner.module or "").split("."))
            elif isinstance(owner, ast.alias):
                names.update((owner.asname or owner.name).split("."))
            elif isinstance(owner, ast.Name):
                local.add(owner.id)
            elif (
                isinstance(owner, ast.Expr)
                and isinstance(owner.value, ast.Constant)
                and isinstance(owner.value.value, str)
            ):
                self.docstrings.append((path, owner.lineno, owner.value.value))
            elif isinstance(owner, ast.Constant) and isinstance(owner.value, str) and len(owner.value) < 40:
                names.add(owner.value)  # a setting, a column, a key of a record
        for statement in tree.body:
            names.update(_targets(statement))
        return local

    def _add_class(self, owner: ast.ClassDef) -> None:
        members = self.members[owner.name]
        for base in owner.bases:
            node = base.value if isinstance(base, ast.Subscript) else base
            self.bases[owner.name].add(
                node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            )
        for statement in owner.body:
            members.update(_targets(statement))
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                members.add(statement.name)
        for node in nodes(owner):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                members.add(node.attr)
        self.names.update(members)

    def has(self, name: str, path: Path) -> bool:
        """Whether a name, dotted or not, is defined; a class must have the member that is named."""
        parts = name.split(".")
        known = self.local.get(path, set())
        if not all(part in self.names or part in known for part in parts):
            return False
        return all(
            self.has_member(owner, member) for owner, member in pairwise(parts) if owner in self.members
        )

    def has_member(self, owner: str, member: str) -> bool:
        if member in self.members[owner]:
            return True
        bases = self.bases.get(owner, set())
        return any(
            self.has_member(base, member) if base in self.members else base not in OWN_ROOTS for base in bases
        )


# Bases that bring no public member of their own.
OWN_ROOTS = frozenset({"Protocol", "Generic", "ABC", "object"})


def _targets(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return
    for target in targets:
        for node in nodes(target):
            if isinstance(node, ast.Name):
                yield node.id


def _texts(docstrings: list[tuple[Path, int, str]]) -> Iterator[tuple[Path, int, str]]:
    """(file, line, text) of each docstring, comment and page."""
    yield from docstrings
    for path, source in SOURCES.items():
        for number, line in enumerate(source.splitlines(), 1):
            _, sign, comment = line.partition("#")
            if sign and "`" in comment:
                yield path, number, comment
    for path, text in PAGES.items():
        yield path, 1, re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def _is_file(path: Path, name: str) -> bool:
    return name.strip("/") in PATHS or (path in PAGES and name in STEMS)


def _undefined(path: Path, text: str, defined: Definitions) -> Iterator[tuple[int, str]]:
    for match in QUOTED.finditer(text):
        name = match[1].removesuffix("()")
        if name in FOREIGN:
            continue
        if (FILE.match(name) and not _is_file(path, name)) or (
            NAME.match(name) and not _is_file(path, name) and not defined.has(name, path)
        ):
            yield match.start(), name
    for match in RAISES.finditer(text):
        for name in re.findall(r"\b[A-Z][A-Za-z]+\b", match[1]):
            if name not in PROSE and not defined.has(name, path):
                yield match.start(), name


def test_names_in_backticks_are_defined() -> None:
    assert len(SOURCES) > 500, "the packages are where this test looks for them"
    defined = Definitions()
    assert len(defined.docstrings) > 5_000
    sample = Path("docs/architecture.md")
    assert [name for _, name in _undefined(sample, "`NoSuchClass`, `Decision.no_such_field`", defined)] == [
        "NoSuchClass",
        "Decision.no_such_field",
    ]
    assert [name for _, name in _undefined(sample, "`no/such.py`. Raises: NoSuchError.", defined)] == [
        "no/such.py",
        "NoSuchError",
    ]
    missing = [
        f"{path}:{line + text[:start].count(chr(10))}: {name}"
        for path, line, text in _texts(defined.docstrings)
        for start, name in _undefined(path, text, defined)
    ]
    assert not missing, "\n".join(missing)


def test_foreign_names_are_named() -> None:
    written = {match for text in [*PAGES.values(), *SOURCES.values()] for match in QUOTED.findall(text)}
    assert not set(FOREIGN) - written
