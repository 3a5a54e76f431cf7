"""Which test functions check something on every path that ends well, found in their syntax trees.

A check that stands only in a loop over what may be empty, or in one branch of an `if`, passes as well when nothing
was looked at. What counts as a check: an `assert`, `pytest.raises`, `warns` or `fail`, an expected `raise`, and a call
of a test helper that itself surely checks. Loops over literals, constants, enumerations, a positive
`range` and `nonempty(...)` surely run; so do loops over what Hypothesis draws, which tries more than the empty.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from syntax_nodes import children, no_collections, nodes

CHECKING_CALLS = frozenset({"raises", "warns", "fail", "nonempty", "deprecated_call"})
# calls that keep the length of what they are given
SAME_LENGTH = frozenset(
    {"enumerate", "list", "tuple", "sorted", "reversed", "zip", "set", "pairwise", "dict"}
)

_DRAWN = "drawn by Hypothesis"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def unsure_tests(files: Iterable[Path]) -> Iterator[tuple[Path, Function]]:
    """The tests of these files that may pass without a check; the files also give the helpers."""
    with no_collections():  # with them it takes twice as long
        trees = {file: ast.parse(file.read_text(), str(file)) for file in files}
    shared = _checking_helpers(trees.values())
    for file, tree in trees.items():
        constants = _constants(tree)
        own = {function.name for function in _functions(tree)}
        helpers = (shared - own) | _checking_helpers([tree], shared - own)
        for node in _functions(tree):
            if not node.name.startswith("test_"):
                continue
            drawn = {name: ast.Constant(_DRAWN) for name in _drawn(node)}
            if not _Checks(helpers, constants | drawn).surely(node.body):
                yield file, node


def _drawn(test: Function) -> Iterator[str]:
    """The arguments that Hypothesis draws: of many examples, some are not empty."""
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "given":
            yield from (keyword.arg for keyword in decorator.keywords if keyword.arg)
            names = [argument.arg for argument in test.args.args]
            yield from names[len(names) - len(decorator.args) :]


@cache
def _functions(tree: ast.AST) -> tuple[Function, ...]:
    return tuple(node for node in statements(tree) if isinstance(node, Function))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that stand in it, however deep; a definition is one, so no expression is looked into."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from statements(child)


def _checking_helpers(trees: Iterable[ast.Module], known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Names of functions, methods and fixtures of which every definition surely checks when it is called."""
    defined: dict[str, list[tuple[Function, dict[str, ast.expr]]]] = {}
    for tree in trees:
        constants = _constants(tree)
        for function in _functions(tree):
            if not function.name.startswith("test_"):
                defined.setdefault(function.name, []).append((function, constants))
    while True:
        found = known | frozenset(
            name
            for name, functions in defined.items()
            if name not in known
            and all(_callable_checks(function, constants, known) for function, constants in functions)
        )
        if found == known:
            return known
        known = found


def _callable_checks(function: Function, constants: dict[str, ast.expr], helpers: frozenset[str]) -> bool:
    checks = _Checks(helpers, constants)
    if not any(_is_fixture(decorator) for decorator in function.decorator_list):
        return checks.surely(function.body)
    # a fixture is called through what it returns
    inner = {node.name: node for node in function.body if isinstance(node, Function)}
    given = [
        node.value.id
        for node in nodes(function)
        if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Name)
    ]
    return bool(given) and all(name in inner and checks.surely(inner[name].body) for name in given)


def _is_fixture(decorator: ast.expr) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "fixture" for node in nodes(decorator))


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    return dict(_assigned(tree.body))


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value
        ):
            yield statement.target.id, statement.value


class _Checks:
    """One function's body, read from its top to its end."""

    def __init__(self, helpers: frozenset[str], constants: dict[str, ast.expr]):
        self._helpers = helpers
        self._values = dict(constants)

    def surely(self, body: list[ast.stmt]) -> bool:
        """Whether each way through these statements that ends well meets a check."""
        for statement in body:
            if self._statement(statement):
                return True
            if isinstance(statement, Function) and self.surely(statement.body):
                self._helpers |= {statement.name}
            self._values.update(_assigned([statement]))
            if self._leaves(statement):
                return False
        return False

    def _leaves(self, node: ast.AST, in_loop: bool = False) -> bool:
        """Whether what stands after this statement may be passed over without a check before."""
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, ast.Continue | ast.Break):
            return not in_loop
        if isinstance(node, Function | ast.Lambda | ast.ClassDef):
            return False
        if isinstance(node, ast.If):
            return any(self._body_leaves(body, in_loop) for body in (node.body, node.orelse))
        in_loop = in_loop or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        return any(
            self._leaves(child, in_loop) for child in children(node) if not isinstance(child, ast.expr)
        )

    def _body_leaves(self, body: list[ast.stmt], in_loop: bool) -> bool:
        for statement in body:
            if self._statement(statement):
                return False
            if self._leaves(statement, in_loop):
                return True
        return False

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, Function | ast.ClassDef):
            return False  # defined here, not run here
        if isinstance(node, ast.If):
            return self._expression(node.test) or (
                bool(node.orelse) and self.surely(node.body) and self.surely(node.orelse)
            )
        if isinstance(node, ast.For | ast.AsyncFor):
            runs = self.not_empty(node.iter)
            return (
                self._expression(node.iter) or (runs and self.surely(node.body)) or self.surely(node.orelse)
            )
        if isinstance(node, ast.While):
            always = isinstance(node.test, ast.Constant) and bool(node.test.value)
            return self._expression(node.test) or (always and self.surely(node.body))
        if isinstance(node, ast.With | ast.AsyncWith):
            return any(self._expression(item.context_expr) for item in node.items) or self.surely(node.body)
        if isinstance(node, ast.Try | ast.TryStar):
            body = self.surely(node.body) or self.surely(node.orelse)
            return self.surely(node.finalbody) or (
                body and all(self.surely(handler.body) for handler in node.handlers)
            )
        if isinstance(node, ast.Match):
            return self._expression(node.subject) or all(self.surely(case.body) for case in node.cases)
        return self._expression(node)

    def _expression(self, node: ast.AST) -> bool:
        """Whether a checking call is made surely while this is evaluated."""
        if isinstance(node, ast.Lambda | ast.GeneratorExp | Function):
            return False
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp):
            first = node.generators[0]
            return self._expression(first.iter)
        if isinstance(node, ast.BoolOp):
            return self._expression(node.values[0])
        if isinstance(node, ast.IfExp):
            return self._expression(node.test)
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CHECKING_CALLS or name.startswith("assert_") or name in self._helpers:
                return True
        return any(self._expression(child) for child in children(node))

    def not_empty(self, node: ast.expr, depth: int = 4) -> bool:
        """Whether a loop over this surely has a first item."""
        if depth == 0:
            return False
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return any(
                not isinstance(item, ast.Starred) or self.not_empty(item.value, depth - 1)
                for item in node.elts
            )
        if isinstance(node, ast.Dict):
            return len(node.keys) > 0
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.Name):
            value = self._values.get(node.id)
            # a constant or an enumeration that another module defines
            return self.not_empty(value, depth - 1) if value is not None else node.id[:1].isupper()
        if isinstance(node, ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp):
            return all(not part.ifs and self.not_empty(part.iter, depth - 1) for part in node.generators)
        if isinstance(node, ast.IfExp):
            return self.not_empty(node.body, depth - 1) and self.not_empty(node.orelse, depth - 1)
        return isinstance(node, ast.Call) and self._call_not_empty(node, depth)

    def _call_not_empty(self, node: ast.Call, depth: int) -> bool:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr in ("items", "values", "keys") and not node.args:
                return self.not_empty(function.value, depth - 1)
            return False
        name = getattr(function, "id", "")
        if name == "nonempty":
            return True
        if name == "range":
            numbers = [self._number(argument) for argument in node.args]
            return None not in numbers and len(range(*numbers)) > 0  # type: ignore[arg-type]
        if name == "zip":
            strict = any(
                keyword.arg == "strict" and ast.unparse(keyword.value) == "True" for keyword in node.keywords
            )
            return (any if strict else all)(self.not_empty(part, depth - 1) for part in node.args)
        return name in SAME_LENGTH and bool(node.args) and self.not_empty(node.args[0], depth - 1)

    def _number(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Name) and node.id in self._values:
            node = self._values[node.id]
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError):
            return None
        return 1 if value == _DRAWN else value if isinstance(value, int) else None
