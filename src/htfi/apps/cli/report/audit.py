"""The narrative audit on the page: of the whole run, and of each reading that is told. Every text is escaped here."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from html import escape

from htfi.domain.decision import Decision, Wording
from htfi.narrative.audit import Section, account
from htfi.narrative.audit_summary import Summary
from htfi.wiring.spelling import spelling


def account_of(decision: Decision) -> tuple[Section, ...]:
    """What became of the news in a decision, its tokens in words where the model that wrote them is a shipped one."""
    view = decision.view
    spell = _spelling(view.wording.target) if view is not None and view.wording is not None else None
    return account(decision, None, spell)


@lru_cache(maxsize=4)
def _spelling(target: str) -> Callable[[int], str] | None:
    return spelling(Wording(target, "", "", 0, 0.0, 0, (), (), ()))


def summary_html(summary: Summary) -> str:
    """The run's narrative in words; empty where there was no news in it."""
    if not summary.num_with_news:
        return ""
    return f"<h3>What became of the news</h3>{_sections(summary.sections())}"


def account_html(sections: Iterable[Section]) -> str:
    """One decision's narrative, folded away until somebody asks."""
    return f"<details><summary>audit</summary>{_sections(sections)}</details>"


def _sections(sections: Iterable[Section]) -> str:
    return "<dl>{}</dl>".format(
        "".join(
            f"<dt>{escape(one.title)}</dt><dd>{'<br>'.join(escape(line) for line in one.lines)}</dd>"
            for one in sections
        )
    )
