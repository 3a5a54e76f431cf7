"""Counts the mutants of a module that its tests kill: `PYTHONPATH=src python tests/mutation.py src/htfi/… [--num 25]`.

A mutant is the module with one small change: a comparison turned, a constant moved by one, a condition negated, a call
left out. A fixed seed chooses some of all that are possible. The tests are those of the test files that import the
module, cheapest folders first. Run it in a copy of the project: the module is rewritten for each mutant, then restored.
"""

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Pow: ast.Mult,
}
FOLDERS = ("unit", "property", "integration", "fault", "fuzz", "e2e")
TIMEOUT_S = 150.0

Change = tuple[str, Callable[[], None]]


def changes(node: ast.AST) -> Iterator[Change]:
    """What may be changed in this node alone; each change is made in place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        yield "compare", lambda: node.ops.__setitem__(0, COMPARED[type(node.ops[0])]())
    elif (isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_text(node)) or (
        isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED
    ):
        yield "compute", lambda: setattr(node, "op", COMPUTED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and-or", lambda: setattr(node, "op", other())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", lambda: setattr(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "constant", lambda: setattr(node, "value", node.value + 1)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "condition", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return", lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call", lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield "filter", lambda: node.ifs.pop()


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run, without annotations and the words of errors."""
    yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params") or isinstance(tree, ast.Raise):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from nodes(child)


def mutants(source: str) -> list[tuple[str, str]]:
    """Every mutant: what was changed, and the text."""
    tree = ast.parse(source)
    num = sum(1 for node in nodes(tree) for _ in changes(node))
    found: list[tuple[str, str]] = []
    for place in range(num):
        altered = copy.deepcopy(tree)
        node, (kind, change) = [(node, each) for node in nodes(altered) for each in changes(node)][place]
        line = getattr(node, "lineno", 0)
        change()
        found.append((f"{kind} at {line}", ast.unparse(ast.fix_missing_locations(altered))))
    return found


def importing_tests(root: Path, module: str) -> list[Path]:
    """The test files that import the module, cheapest folders first."""
    found: list[Path] = []
    for file in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            else:
                continue
            if module in names:
                found.append(file)
                break
    return sorted(found, key=lambda file: FOLDERS.index(file.relative_to(root / "tests").parts[0]))


def run_tests(root: Path, arguments: list[str], timeout_s: float) -> tuple[str, float]:
    """In a fork, which has the foreign libraries loaded already."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        try:
            nothing = os.open(os.environ.get("MUTATION_LOG", os.devnull), os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            os.chdir(root)
            import pytest

            os._exit(
                int(
                    pytest.main(
                        ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", *arguments]
                    )
                )
            )
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            os._exit(70)
    while time.monotonic() - begun < timeout_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return (
                "survived" if code == 0 else "killed" if code > 0 else "crashed"
            ), time.monotonic() - begun
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out", time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--num", type=int, default=25, help="mutants of a module")
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of tests for a mutant")
    parser.add_argument("--json", type=Path, help="a line for each mutant is added here")
    options = parser.parse_args()
    root = Path.cwd()
    sources = [str(root / folder) for folder in ("src", "evaluation/src", "training/src")]
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=":".join(sources), HYPOTHESIS_MUTATION="1")
    sys.dont_write_bytecode = True
    sys.path[:0] = [*sources, str(root / "tests")]
    for library in (
        "numpy",
        "numpy.testing",
        "pytest",
        "msgspec",
        "cryptography",
        "click",
        "arro3.core",
        "arro3.io",
        "pyarrow",
        "rich",
    ):
        __import__(library)
    total = [0, 0]
    for module in options.modules:
        killed, tried = try_module(root, module, options)
        total[0] += killed
        total[1] += tried
        sys.stdout.write(f"{module}: {killed} of {tried} killed\n")
    sys.stdout.write(f"all: {total[0]} of {total[1]} killed\n")


def try_module(root: Path, module: Path, options: argparse.Namespace) -> tuple[int, int]:
    place = module.resolve()
    base = next(base for base in (root / "src", root / "training/src") if place.is_relative_to(base))
    name = ".".join(place.relative_to(base).with_suffix("").parts)
    source = module.read_text()
    files, spent_s = [], 0.0
    for file in importing_tests(root, name):
        how, seconds = run_tests(root, ["--hypothesis-seed=0", str(file)], options.budget)
        if how == "survived" and spent_s + seconds <= options.budget:
            files.append(str(file))
            spent_s += seconds
    sys.stdout.write(f"{module}: {len(files)} test files, {spent_s:.0f} s\n")
    every = mutants(source)
    chosen = random.Random(options.seed).sample(range(len(every)), min(options.num, len(every)))
    num_killed = 0
    # no stale bytecode beside the module
    for cached in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc"):
        cached.unlink()
    try:
        for place in sorted(chosen):
            what, text = every[place]
            module.write_text(text)
            how, seconds = run_tests(root, ["--hypothesis-seed=0", *files], 3 * spent_s + 20)
            num_killed += how != "survived"
            if options.json:
                digest = hashlib.sha256(text.encode()).hexdigest()[:16]
                with options.json.open("a") as out:
                    out.write(json.dumps([str(module), place, what, how, round(seconds, 2), digest]) + "\n")
    finally:
        module.write_text(source)
    return num_killed, len(chosen)


if __name__ == "__main__":
    main()
