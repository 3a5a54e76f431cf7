"""Finds text that would steer a machine or the crowd: orders to a model, and pump language. The sanitiser calls it."""

import re

from htfi.domain.news import Finding
from htfi.narrative.sanitising.undo import Undone

_INJECTION = re.compile(
    r"(?i)\b(ignore|disregard|forget)\b.{0,40}\b(previous|prior|above|all)\b.{0,30}\b(instruction|prompt|rule)|"
    r"system prompt|<\|im_start\||\[/?INST\]"
)
_PUMP = re.compile(
    r"(?i)guaranteed (gains?|profits?|returns?)|to the moon|buy now before|\bpump\b.{0,40}\b(left|gmt)\b"
)


def examine(text: str, undone: Undone) -> tuple[Finding, ...]:
    """Findings in the undone text and in what was hidden; `text` is the raw one."""
    seen = (undone.text, *undone.hidden)
    findings: list[Finding] = []
    if any(_INJECTION.search(one) for one in seen):
        findings.append(Finding("injection", 0.9, "gives orders to a model"))
    if any(_PUMP.search(one) for one in seen):
        findings.append(Finding("pump", 0.9, "urges to buy, as those do who pump a price"))
    return tuple(findings)
