"""The nodes of a syntax tree, in a third of the time that `ast.walk` takes: tests read every module of the project."""

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast


@contextmanager
def no_collections() -> Iterator[None]:
    """Inside it nobody looks for garbage: to parse a project makes millions of nodes, and none is garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def children(node: ast.AST) -> list[ast.AST]:
    """Those that `ast.iter_child_nodes` gives, in the same order."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in cast("list[Any]", value) if isinstance(one, ast.AST)]
    return found


def nodes(tree: ast.AST) -> list[ast.AST]:
    """Those that `ast.walk` gives, in the same order."""
    found = [tree]
    for node in found:
        found += children(node)
    return found
