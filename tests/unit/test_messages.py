"""What a person reads is plain English: no message holds a phrase that was retired.

Sentences that are recorded in ledgers, and texts that models were trained on, keep their words.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from syntax_nodes import nodes as nodes_of

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "src/htfi", ROOT / "evaluation/src/htfi_eval", ROOT / "training/src/htfi_train")
KEPT = (
    "htfi_train/simulation/",  # what models were trained on
    "htfi/narrative/question.py",
    "htfi/narrative/answer.py",
    "htfi/narrative/rationale/version_4.py",  # what ledgers hold
    "htfi/domain/plan.py",
    "htfi/narrative/routing.py",
    "htfi_eval/eval/sanitise/attacks.py",  # what attackers write
)
RETIRED = re.compile(
    r"""
    \b(?:  # before all others: a search then looks at beginnings of words only
    news\ (are|were|have|come)\b           # news is
    | (no|any|some|every)body\b | who(so)?ever\b
    | is\ said\ to\b | said\ to\ be\b     # recorded as
    | going\ on\ (from|where)\b | goes\ on\b
    | take\ (it|them)\ (away|out)\b        # remove
    | mend\b | give\ the\ (run's|same)\ command\b | command\ is\ given\ again\b
    | weather\b | stands\ for\ all\b | of\ ours\b | settled\b | told\b | heard\b
    | (?<!there\ )is\ no\ (file|folder|number|text|table|decision|interval|duration|timestamp|symbol|key|plain)\b
    | every\ one\ as\b | find(s|ing)?\ otherwise\b
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)

JOINED = re.compile(r"""["']\s*\n\s*[rf]*["']""")  # where a text goes on in the next line


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module but its docstrings, which are for programmers; those of commands are their help."""
    nodes = nodes_of(ast.parse(path.read_text(encoding="utf-8")))
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and not any(
            "command" in ast.unparse(one) or "group" in ast.unparse(one)
            for one in getattr(node, "decorator_list", [])
        )
    }
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(
                    one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else "…"
                    for one in node.values
                ),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def test_no_message_holds_a_retired_phrase():
    read = found = 0
    bad: list[str] = []
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            if any(str(path.relative_to(package.parent)).startswith(kept) for kept in KEPT):
                continue
            read += 1
            if not RETIRED.search(JOINED.sub("", path.read_text(encoding="utf-8"))):
                continue  # parsing every module takes ten times as long
            for line, text in messages(path):
                if " " not in text.strip():
                    continue  # a name, or a key of something recorded
                found += 1
                if RETIRED.search(" ".join(text.split())):
                    bad.append(f"{path.relative_to(ROOT)}:{line}: {text[:100]!r}")
    assert read > 500
    assert found > 100
    assert bad == []


def test_retired_phrases_are_found():
    for text in (
        "the news are worth the best reader",
        "tokens are said to be settled",
        "is a link to another place: take it away",
        "give the run's command again",
        "'x' is no duration",
    ):
        assert RETIRED.search(text), text
