"""The labelled lines from which the network of facts learns: what is read of them, and what is refused."""

import random
from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi.narrative.facts.record import EventKind, Modality, PartyRole, Tense
from htfi_train.facts.lines import NamePool, read_lines

LINE = "-+ r e | {target+ Puma} jumps as {acquirer0 Anta} is said to circle"
CORPORA = Path(__file__).parents[2] / "corpora" / "facts"


def lines(folder: Path, text: str):
    (folder / "a.txt").write_text(text, encoding="utf-8")
    return read_lines(folder)


def test_a_line_is_read_with_its_labels(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, f"# a remark\n## acquisition\n{LINE}\n\n{LINE}\n")
    assert (line.kind, line.axis, line.tone) == (EventKind.ACQUISITION, "-", "+")
    assert (line.modality, line.tense) == (Modality.RUMOUR, Tense.EXPECTED)
    assert line.text == "Puma jumps as Anta is said to circle"
    text, spans = NamePool([line]).variant(line, random.Random(0), 0.0)
    assert text == line.text
    assert [(text[one.start : one.end], one.role, one.side) for one in spans] == [
        ("Puma", PartyRole.TARGET, "+"),
        ("Anta", PartyRole.ACQUIRER, "0"),
    ]


def test_names_stand_for_one_another(tmp_path: Path) -> None:
    found = lines(
        tmp_path, f"## acquisition\n{LINE}\n++ d f | {{acquirer0 Zentiva}} buys {{target+ Quellux}}\n"
    )
    seen = {NamePool(found).variant(found[0], random.Random(seed), 1.0)[0] for seed in range(20)}
    assert len(seen) > 3
    assert any("Quellux" in text for text in seen)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LINE, "below '## kind'"),
        ("## nothing\n", "no kind of event"),
        ("## deal\n++ d f {subject+ A} wins\n", "line 2"),
        ("## deal\n++ d f | {hero+ A} wins\n", "a mark is"),
        ("", ""),
    ],
)
def test_what_is_no_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    if not text:
        with pytest.raises(InvalidInput, match="no corpora"):
            read_lines(tmp_path)
        return
    with pytest.raises(InvalidInput, match=said):
        lines(tmp_path, text)


def test_the_projects_own_lines_cover_every_kind_and_role() -> None:
    found = read_lines(CORPORA)
    assert len(found) > 14_000
    assert {line.kind for line in found} == set(EventKind) - {EventKind.UNKNOWN}
    roles = {span.role for line in found for span in NamePool([]).variant(line, random.Random(0), 0.0)[1]}
    assert roles == set(PartyRole)
    held = sum(line.is_held_back for line in found) / len(found)
    assert 0.06 < held < 0.11
