"""Shows what changed between two statements of a central bank: as HTML with marked words, and for a terminal."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from html import escape
from itertools import groupby

from rich.text import Text

from htfi.narrative.facts.statements.alignment import RunKind
from htfi.narrative.facts.statements.comparison import (
    MIN_LEAN,
    ChangeKind,
    SentenceChange,
    StatementComparison,
    describe_comparison,
)

_TAGS = {RunKind.SAME: "", RunKind.ADDED: "ins", RunKind.REMOVED: "del"}
_MARKS = {
    RunKind.SAME: ("", "", "dim"),
    RunKind.ADDED: ("+[", "]", "bold green"),
    RunKind.REMOVED: ("-[", "]", "red"),
}


def comparison_html(found: StatementComparison) -> str:
    """The decision and the vote beside those before, then the new text: words that came are underlined, those that
    went struck out, sentences that stayed folded. Every text is escaped here.
    """
    lines = "".join(f"<li>{escape(line)}</li>" for line in describe_comparison(found))
    blocks = "".join(_block_html(shown, list(group)) for shown, group in _blocks(found))
    return f'<div class="statement"><ul>{lines}</ul>{blocks}</div>'


def comparison_text(found: StatementComparison) -> Text:
    """The same for a terminal: '+[came]' in green, '-[went]' in red; sentences that stayed are counted."""
    text = Text("\n".join(describe_comparison(found)) + "\n")
    for shown, group in _blocks(found):
        changes = list(group)
        if shown is not _Shown.WORDS:
            text.append(f"  … {_count(len(changes))} {shown}\n", "dim")
            continue
        for change in changes:
            text.append("  ")
            for run in change.runs:
                before, after, style = _MARKS[run.kind]
                text.append(f"{before}{run.text}{after} ", style)
            text.append(f"{_lean(change)}\n", "italic")
    return text


class _Shown(StrEnum):
    """How neighbouring sentences are shown: word by word, or as their number."""

    WORDS = "words"
    SAME = "unchanged"
    LEFT_OUT = "changed, not kept"


def _blocks(found: StatementComparison) -> Iterator[tuple[_Shown, Iterator[SentenceChange]]]:
    return groupby(found.changes, key=_shown)


def _shown(change: SentenceChange) -> _Shown:
    if change.kind is ChangeKind.SAME and not change.is_moved:
        return _Shown.SAME
    return _Shown.WORDS if change.runs else _Shown.LEFT_OUT


def _block_html(shown: _Shown, changes: Sequence[SentenceChange]) -> str:
    if shown is not _Shown.WORDS:
        text = " ".join(escape(change.new) for change in changes).strip()
        title = f"{_count(len(changes))} {shown}"
        if not text:
            return f'<p class="same">… {title}</p>'
        return f"<details><summary>{title}</summary><p>{text}</p></details>"
    return "".join(
        f'<p class="{change.kind}">{"".join(_run_html(run.kind, run.text) for run in change.runs)}'
        f"{_lean_html(change)}</p>"
        for change in changes
    )


def _run_html(kind: RunKind, text: str) -> str:
    tag = _TAGS[kind]
    return f"<{tag}>{escape(text)}</{tag}> " if tag else f"{escape(text)} "


def _lean(change: SentenceChange) -> str:
    """'(moved)', '(hawkish +0.31)'."""
    words = ["moved"] if change.is_moved else []
    if abs(change.lean) >= MIN_LEAN:
        words.append(f"{'hawkish' if change.lean > 0 else 'dovish'} {change.lean:+.2f}")
    return f"({', '.join(words)})" if words else ""


def _lean_html(change: SentenceChange) -> str:
    words = _lean(change)
    return f"<i>{escape(words)}</i>" if words else ""


def _count(num: int) -> str:
    return f"{num} sentence{'s' if num != 1 else ''}"
