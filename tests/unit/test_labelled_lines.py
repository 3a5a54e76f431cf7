"""Corpora: templates draw what they say, the same again for the same seed, and faults are told by line."""

from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi_train.simulation.labelled_lines import draw_lines, read_corpus

CORPORA = Path(__file__).parents[2] / "corpora"
HEADER = "#! mood: g = good, b = bad; slots.txt; 4 lines\n"


def _corpus(folder: Path, text: str) -> Path:
    (folder / "slots.txt").write_text("co: Alder | Birch\n=cur: EUR | USD\n")
    (folder / "mood.txt").write_text(HEADER + text)
    return folder / "mood.txt"


def test_labels_take_their_own_branches(tmp_path: Path) -> None:
    corpus = read_corpus(
        _corpus(tmp_path, "gb | {co} profit <rose//fell> to {cur} <{hi}//{lo}> from {cur} <{lo}//{hi}>\n")
    )
    lines = draw_lines(corpus.templates, corpus.slots, 4, 1)
    assert {line.label for line in lines} == {"g", "b"}
    for line in lines:
        words = line.text.split()
        now, before = float(words[5]), float(words[8])
        assert (words[2], now > before) == (("rose", True) if line.label == "g" else ("fell", False))
        assert words[4] == words[7]  # one currency in a line


def test_same_seed_draws_the_same_lines_and_another_others(tmp_path: Path) -> None:
    corpus = read_corpus(_corpus(tmp_path, "g | {co} [won|got] {n:2-900} orders\nb | {co} lost {p}\n"))
    drawn = [draw_lines(corpus.templates, corpus.slots, 4, seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert len({line.text for line in drawn[0]}) == len(drawn[0]) == 8


@pytest.mark.parametrize(
    "text",
    ["x | unknown label\n", "g good without a bar\n", "g | <a//b>\n", "g | {nothing}\n", "g | [left open\n"],
)
def test_faulty_template_is_told_by_line(tmp_path: Path, text: str) -> None:
    def draw() -> None:
        corpus = read_corpus(_corpus(tmp_path, text))
        draw_lines(corpus.templates, corpus.slots, 4, 1)

    with pytest.raises(InvalidInput, match=r"mood\.txt:2"):
        draw()


def test_missing_header_or_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        read_corpus(tmp_path / "none.txt")
    (tmp_path / "bare.txt").write_text("g | text\n")
    with pytest.raises(InvalidInput, match="must begin"):
        read_corpus(tmp_path / "bare.txt")


@pytest.mark.parametrize("name", ["sentiment", "stance"])
def test_corpora_of_the_project_are_well_formed_and_balanced(name: str) -> None:
    corpus = read_corpus(CORPORA / f"{name}.txt")
    lines = draw_lines(corpus.templates, corpus.slots, corpus.per_template, 1)
    assert len(lines) > 1_500
    for label in corpus.labels:
        assert sum(line.label == label for line in lines) > len(lines) / 5
    assert len({line.text for line in lines}) == len(lines)
