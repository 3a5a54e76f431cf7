"""The project's own held-out lines: irrelevant ones under a tag, roles, well-known events, comparisons and faults.

They lie beside this module (`lines/`), in real wordings that no network learnt from. `htfi news --file` would read each
file in the same way: the names of a file's symbols are known to the reader. Mistakes are shown of one half of the lines
only; figures of the other half end in `_unseen_half`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.policy.action import PolicyAction, PolicyModality
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.record import PartyRole
from htfi.narrative.facts.surprises import Verdict, find_surprises
from htfi.narrative.understanding import NewsText
from htfi_eval.commands import ProgressLine
from htfi_eval.eval.reading.readings import ReadItem, ViewSign, read_items
from htfi_eval.eval.reading.scores import as_signs, sign_figures
from htfi_eval.eval.sanitise.data import is_seen

OpenReader = Callable[[Mapping[str, str]], FactReader]

# Roles that name the same part of an event: who wins an order supplies it, and who sells a firm gives it up.
_SAME_PART = {
    PartyRole.WINNER: {PartyRole.SUPPLIER},
    PartyRole.SUPPLIER: {PartyRole.WINNER},
}
_MAX_SHOWN = 160
_OTHERWISE = "given otherwise"  # column of the roles that were given instead
_SAME_LEVEL = 0.011  # percentage points


@dataclass(frozen=True, slots=True)
class OwnLine:
    """One line: what is asked of the reader, and what is expected of it by the keys of its file."""

    item: NewsText
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line and what the reader made of it."""

    line: OwnLine
    read: ReadItem


def own_lines(name: str) -> list[OwnLine]:
    """The lines of `lines/<name>.jsonl`; none where the file is not there."""
    file = resources.files("htfi_eval.eval.reading") / "lines" / f"{name}.jsonl"
    if not file.is_file():
        return []
    rows = [json.loads(row) for row in file.read_text(encoding="utf-8").splitlines() if row.strip()]
    return [
        OwnLine(
            NewsText(row["text"], row.get("body", ""), row.get("symbol", ""), row.get("name", "")),
            {key: value for key, value in row.items() if key not in ("text", "body", "symbol", "name")},
        )
        for row in rows
    ]


def read_lines(name: str, open_reader: OpenReader) -> list[ReadLine]:
    """Every line of a file as `htfi news --file` reads it."""
    lines = own_lines(name)
    if not lines:
        return []
    reader = open_reader({line.item.symbol: line.item.name for line in lines if line.item.symbol})
    read = read_items(reader, [line.item for line in lines], ProgressLine(f"own lines: {name}"))
    return [ReadLine(line, one) for line, one in zip(lines, read, strict=True)]


def role_is_right(expected: PartyRole, given: PartyRole | None) -> bool:
    """The same role, or one that names the same part of the event."""
    return given is expected or given in _SAME_PART.get(expected, ())


@dataclass(frozen=True, slots=True)
class OwnLineFigures:
    """Figures of all files; `rows` of the tables by title, `mistakes` with their lines."""

    metrics: dict[str, float | None]
    kinds: list[dict[str, object]]
    mistakes: list[dict[str, object]]

    def add_mistake(self, file: str, text: str, *, expected: object, got: str, asked: str = "") -> None:
        """One line of the half that may be looked at; of the other half nothing is kept."""
        if is_seen(text):
            self.mistakes.append(
                {"file": file, "expected": expected, "got": got, "asked": asked, "text": text[:_MAX_SHOWN]}
            )


def judge_own_lines(open_reader: OpenReader) -> OwnLineFigures:
    """All files that are there."""
    figures = OwnLineFigures({}, [], [])
    _judge_irrelevant(read_lines("irrelevant", open_reader), figures)
    for name in ("roles", "parties"):
        _judge_roles(name, read_lines(name, open_reader), figures)
    _judge_known(read_lines("known", open_reader), figures)
    _judge_surprises(own_lines("surprises"), figures)
    _judge_policy(own_lines("policy"), figures)
    _judge_faults(read_lines("faults", open_reader), figures)
    return figures


def _judge_irrelevant(lines: Sequence[ReadLine], figures: OwnLineFigures) -> None:
    if not lines:
        return
    _figure(figures, "fires_on_irrelevant", lines, [one.read.speaks for one in lines])
    for sort, group in _by(lines, "sort").items():
        _add(figures, "irrelevant", sort, len(group), silent=1.0 - _mean(one.read.speaks for one in group))
    _mistakes(figures, "irrelevant", [one for one in lines if one.read.speaks], "silence")


def _judge_roles(name: str, lines: Sequence[ReadLine], figures: OwnLineFigures) -> None:
    """`roles` are headlines with well-known names, `parties` with invented ones."""
    if not lines:
        return
    right = [role_is_right(PartyRole(one.line.expected["role"]), one.read.role) for one in lines]
    strict = [one.line.expected["role"] == one.read.role for one in lines]
    suffix = "" if name == "roles" else "_invented_names"
    _figure(figures, f"role_right{suffix}", lines, right)
    _figure(figures, f"role_right_strict{suffix}", lines, strict)
    for role, group in _by(lines, "role").items():
        given = Counter((one.read.role.value if one.read.role else "none") for one in group)
        others = ", ".join(f"{other} {num}" for other, num in given.most_common(4) if other != role)
        _add(
            figures,
            name,
            role,
            len(group),
            right=_mean(role_is_right(PartyRole(role), one.read.role) for one in group),
            **{_OTHERWISE: others},
        )
    wrong = [one for one, is_right in zip(lines, right, strict=True) if not is_right]
    _mistakes(figures, name, wrong, "role")
    _add_signs(figures, name, lines)


def _judge_known(lines: Sequence[ReadLine], figures: OwnLineFigures) -> None:
    if lines:
        _add_signs(figures, "known events", lines)
        _mistakes(
            figures,
            "known events",
            [
                one
                for one in lines
                if one.read.speaks and one.read.direction != one.line.expected["direction"]
            ],
            "direction",
        )


def _add_signs(figures: OwnLineFigures, name: str, lines: Sequence[ReadLine]) -> None:
    """Signs of the lines whose direction is stated."""
    found = sign_figures(
        as_signs([int(one.line.expected["direction"]) for one in lines]),
        as_signs([one.read.direction for one in lines]),
    )
    prefix = name.partition(" ")[0]
    figures.metrics[f"{prefix}_sign_right"] = found.sign_right
    figures.metrics[f"{prefix}_speaks"] = found.speaks
    _add(
        figures,
        name,
        "signs, where it speaks",
        found.num,
        right=found.sign_right,
        speaks=found.speaks,
        silent=1.0 - found.fires_on_neutral,
    )


def _judge_surprises(lines: Sequence[OwnLine], figures: OwnLineFigures) -> None:
    if not lines:
        return
    wrong: list[tuple[OwnLine, str]] = []
    for line in lines:
        said = _verdict(line)
        if said != str(line.expected["verdict"]).replace("_", " "):
            wrong.append((line, said))
    missed = {line.item.text for line, _ in wrong}
    _figure(figures, "surprise_right_own_lines", lines, [line.item.text not in missed for line in lines])
    _add(figures, "comparisons", "own lines", len(lines), right=1.0 - len(wrong) / len(lines))
    for line, said in wrong:
        figures.add_mistake("comparisons", line.item.text, expected=str(line.expected["verdict"]), got=said)


def _verdict(line: OwnLine) -> str:
    """Of the comparison of the line's measure, else of the first; no comparison leaves it unclear."""
    found = find_surprises(line.item.text)
    asked = str(line.expected.get("measure", "")).casefold()
    named = [one for one in found if asked and one.measure.casefold() == asked]
    return (named or found)[0].verdict.value if found else Verdict.UNCLEAR.value


def _judge_policy(lines: Sequence[OwnLine], figures: OwnLineFigures) -> None:
    """Decisions on rates in wordings that the reader was not made with: bank, move, and size and level where stated."""
    if not lines:
        return
    wrong: list[tuple[OwnLine, str]] = []
    for line in lines:
        read = find_policy_action(line.item.text)
        done = read if read is not None and read.modality is PolicyModality.DID else None
        if not _is_action(done, line.expected):
            wrong.append((line, "no decision" if done is None else action_text(done)))
    missed = {line.item.text for line, _ in wrong}
    _figure(figures, "policy_right_own_lines", lines, [line.item.text not in missed for line in lines])
    _add(figures, "policy", "decisions and talk of them", len(lines), right=1.0 - len(wrong) / len(lines))
    for line, said in wrong:
        wanted = (
            f"{line.expected['bank']} {line.expected['move']}" if line.expected["bank"] else "no decision"
        )
        figures.add_mistake("policy", line.item.text, expected=wanted, got=said)


def _is_action(read: PolicyAction | None, expected: Mapping[str, Any]) -> bool:
    if read is None or expected["bank"] is None:
        return read is None and expected["bank"] is None
    size, level = expected.get("size_bp"), expected.get("level")
    return (
        (read.bank, read.move.value) == (expected["bank"], expected["move"])
        and (size is None or read.size_bp == size)
        and (level is None or (read.high is not None and abs(read.high - level) < _SAME_LEVEL))
    )


def action_text(action: PolicyAction) -> str:
    """A decision in a few words, for a table."""
    size = "" if action.size_bp is None else f" by {action.size_bp} bp"
    level = "" if action.high is None else f" to {action.high:g}%"
    return f"{action.bank} {action.modality.value} {action.move.value}{size}{level}"


def _judge_faults(lines: Sequence[ReadLine], figures: OwnLineFigures) -> None:
    """All were read without an exception; a line says which directions are no mistake, 0 being silence."""
    if not lines:
        return
    wrong = [one for one in lines if int(one.read.direction) not in one.line.expected["allowed"]]
    _figure(figures, "faults_right", lines, [one not in wrong for one in lines])
    _add(figures, "faults", "silence, or no wrong direction", len(lines), right=1.0 - len(wrong) / len(lines))
    for one in wrong:
        wanted = [_DIRECTIONS[ViewSign(sign)] for sign in one.line.expected["allowed"]]
        figures.add_mistake(
            "faults",
            one.line.item.text,
            expected=" or ".join(wanted),
            got=one.read.words,
            asked=one.line.expected["note"],
        )


def _mistakes(figures: OwnLineFigures, name: str, lines: Sequence[ReadLine], key: str) -> None:
    for one in lines:
        wanted = one.line.expected.get(key, key)
        got = (one.read.role.value if one.read.role else "none") if key == "role" else one.read.words
        figures.add_mistake(
            name,
            one.line.item.text,
            expected=_DIRECTIONS.get(wanted, wanted) if key == "direction" else wanted,
            got=got,
            asked=one.line.item.name or one.line.item.symbol,
        )


_DIRECTIONS = {ViewSign.UP: "up", ViewSign.NONE: "silence", ViewSign.DOWN: "down"}


def _figure(
    figures: OwnLineFigures, name: str, lines: Sequence[OwnLine] | Sequence[ReadLine], right: Sequence[bool]
) -> None:
    """The share over all lines, and over the half whose mistakes were not read."""
    texts = [(line.line if isinstance(line, ReadLine) else line).item.text for line in lines]
    figures.metrics[name] = _mean(right)
    figures.metrics[f"{name}_unseen_half"] = _mean(
        one for one, text in zip(right, texts, strict=True) if not is_seen(text)
    )


def _add(figures: OwnLineFigures, name: str, kind: str, num: int, **values: object) -> None:
    figures.kinds.append({"file": name, "kind": kind, "lines": num, **values})


def _by(lines: Sequence[ReadLine], key: str) -> dict[str, list[ReadLine]]:
    groups: defaultdict[str, list[ReadLine]] = defaultdict(list)
    for one in lines:
        groups[str(one.line.expected.get(key, ""))].append(one)
    return dict(sorted(groups.items()))


def _mean(values: Any) -> float:
    found = [bool(value) for value in values]
    return sum(found) / len(found) if found else float("nan")
