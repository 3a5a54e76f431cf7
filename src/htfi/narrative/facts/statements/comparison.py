"""Compares a bank's new document with its last one: the action, the votes, each sentence that came, went or changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from htfi.narrative.facts.policy.action import PolicyAction, PolicyMove
from htfi.narrative.facts.policy.attributes import move_between
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.policy.votes import NO_VOTE, Dissent, Vote
from htfi.narrative.facts.sentences import split_sentences
from htfi.narrative.facts.statements.alignment import (
    MAX_SENTENCES,
    Encode,
    RunKind,
    WordRun,
    align_sentences,
    word_runs,
)
from htfi.narrative.patterns import Patterns

MIN_LEAN = 0.05  # that is worth stating
Stances = Callable[[Sequence[str]], Sequence[float]]  # of texts, −1 dovish to 1 hawkish


class ChangeKind(StrEnum):
    """What became of a sentence."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class SentenceChange:
    """A sentence of the old and of the new text, '' where there is none, and what became of its words.

    `lean` is how much more hawkish (to 2) or dovish (to −2) the text became by it; 0 without a judge.
    """

    kind: ChangeKind
    old: str
    new: str
    runs: tuple[WordRun, ...]
    lean: float = 0.0
    is_moved: bool = False


@dataclass(frozen=True, slots=True)
class StatementComparison:
    """A new document beside the last one of the same bank; `changes` holds every sentence in order."""

    bank: str
    before: PolicyAction | None
    now: PolicyAction | None
    changes: tuple[SentenceChange, ...]
    lean: float = 0.0  # −1 dovish to 1 hawkish: mean of the leans of what changed

    def of_kind(self, kind: ChangeKind) -> tuple[SentenceChange, ...]:
        return tuple(change for change in self.changes if change.kind is kind)

    @property
    def changed_share(self) -> float:
        """The share of sentences that came, went or changed, 0–1."""
        num_same = len(self.of_kind(ChangeKind.SAME))
        return 1.0 - num_same / len(self.changes) if self.changes else 0.0

    @property
    def new_dissents(self) -> tuple[Dissent, ...]:
        """Those who dissent now and did not before, by name; all of now without names."""
        before = {dissent.name for dissent in _vote(self.before).dissents}
        return tuple(one for one in _vote(self.now).dissents if one.name not in before or not one.name)


_FURNITURE = Patterns("htfi.narrative.facts.statements", "patterns.toml", "comparison").compiled("furniture")


def compare_statements(
    old: str, new: str, *, bank: str = "", stances: Stances | None = None, encode: Encode | None = None
) -> StatementComparison:
    """What changed from the old document to the new one. `stances` judges sentences, `encode` helps to pair them."""
    before, after = _sentences(old), _sentences(new)
    earlier, now = find_policy_action("", old, bank), find_policy_action("", new, bank)
    changes: list[SentenceChange] = []
    for pair in align_sentences(before, after, encode):
        left = before[pair.old] if pair.old is not None else ""
        right = after[pair.new] if pair.new is not None else ""
        changes.append(_change(left, right, is_moved=pair.is_moved))
    if stances is not None:
        changes = _with_leans(changes, stances)
    moved = [change.lean for change in changes if change.kind is not ChangeKind.SAME]
    lean = max(-1.0, min(1.0, sum(moved) / len(moved))) if moved else 0.0
    named = bank or (now.bank if now is not None else "")
    return StatementComparison(named, earlier, _sized(earlier, now), tuple(changes), round(lean, 3))


def _sized(before: PolicyAction | None, now: PolicyAction | None) -> PolicyAction | None:
    """The new action with its size, where only the two levels state it."""
    if before is None or now is None or now.size_bp is not None or now.instrument is not before.instrument:
        return now
    if before.high is None or now.high is None or move_between(before.high, now.high) is not now.move:
        return now
    return replace(now, size_bp=abs(round((now.high - before.high) * 100.0)), prior=before.high)


def describe_comparison(found: StatementComparison) -> list[str]:
    """The comparison in lines of words: the action, the vote, how many sentences changed, and which way they lean."""
    lines = [f"{describe_action(found.now)}; before: {describe_action(found.before)}"]
    vote, earlier = _vote(found.now), _vote(found.before)
    if vote != NO_VOTE or earlier != NO_VOTE:
        lines.append(f"{_vote_words(vote)}; before: {_vote_words(earlier)}")
    nums = [
        f"{len(found.of_kind(kind))} {kind}"
        for kind in (ChangeKind.CHANGED, ChangeKind.ADDED, ChangeKind.REMOVED, ChangeKind.SAME)
    ]
    lean = "" if abs(found.lean) < MIN_LEAN else f"; what changed leans {_lean_words(found.lean)}"
    lines.append(f"sentences: {', '.join(nums)}{lean}")
    return lines


def describe_action(action: PolicyAction | None) -> str:
    """'cut by 25 bp to 3.5–3.75%', 'held at 2%'."""
    if action is None:
        return "no decision stated"
    if action.move is PolicyMove.HOLD:
        words = "held"
    else:
        size = f" by {action.size_bp} bp" if action.size_bp else ""
        words = f"{_PAST.get(action.move, action.move.value)}{size}"
    if action.high is None or action.low is None:
        return words
    level = f"{action.high:g}%" if action.low == action.high else f"{action.low:g}–{action.high:g}%"
    return f"{words} {'at' if action.move is PolicyMove.HOLD else 'to'} {level}"


_PAST = {PolicyMove.CUT: "cut", PolicyMove.RAISE: "raised", PolicyMove.START: "purchases started"}


def _vote(action: PolicyAction | None) -> Vote:
    return action.vote if action is not None else NO_VOTE


def _vote_words(vote: Vote) -> str:
    if vote == NO_VOTE:
        return "no vote stated"
    count = "unanimous" if vote.num_against == 0 else f"vote {vote.num_for or '?'}–{vote.num_against or '?'}"
    names = [f"{one.name or 'a member'} ({one.preference})" for one in vote.dissents]
    return f"{count}{', against: ' + ', '.join(names) if names else ''}"


def _lean_words(lean: float) -> str:
    return f"{'hawkish' if lean > 0 else 'dovish'} ({lean:+.2f})"


def _sentences(text: str) -> list[str]:
    found = [one.text for one in split_sentences(text)]
    return [line for line in found if not _FURNITURE.match(line.lower())][:MAX_SENTENCES]


def _change(old: str, new: str, *, is_moved: bool) -> SentenceChange:
    if not old:
        return SentenceChange(ChangeKind.ADDED, "", new, (WordRun(RunKind.ADDED, new),))
    if not new:
        return SentenceChange(ChangeKind.REMOVED, old, "", (WordRun(RunKind.REMOVED, old),))
    runs = word_runs(old, new)
    is_same = all(run.kind is RunKind.SAME for run in runs)
    kind = ChangeKind.SAME if is_same else ChangeKind.CHANGED
    return SentenceChange(kind, old, new, runs, is_moved=is_moved)


def _with_leans(changes: Sequence[SentenceChange], stances: Stances) -> list[SentenceChange]:
    """Each change with the difference of the stances of its sentences, all judged at once."""
    changed = [change for change in changes if change.kind is not ChangeKind.SAME]
    texts = [text for change in changed for text in (change.old, change.new) if text]
    judged = iter(stances(texts)) if texts else iter(())
    leans: list[float] = []
    for change in changed:
        old = next(judged) if change.old else 0.0
        new = next(judged) if change.new else 0.0
        leans.append(round(new - old, 3))
    left = iter(leans)
    return [
        change if change.kind is ChangeKind.SAME else replace(change, lean=next(left)) for change in changes
    ]
