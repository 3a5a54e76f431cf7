"""Runs whose language models are killed, missing, damaged or do not fit each other."""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from htfi.domain.errors import HtfiError
from htfi.narrative.merging import READER_SEPARATOR
from htfi.wiring.ledger import open_ledger_readonly
from late_network import told
from random_pair import write_random_pair

Process = subprocess.Popen[bytes]
NUM_DAYS = 60


@pytest.fixture(scope="module", autouse=True)
def every_item_is_worth_a_model() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTFI_ENCODING__MODEL", "heads")
        patch.setenv("HTFI_SCHEDULING__MIN_INFLUENCE", "0")
        yield


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three symbols over sixty days, and a headline a day on one of them or on the market."""
    folder = tmp_path_factory.mktemp("sources")
    prices, news = folder / "prices.csv", folder / "news.jsonl"
    rng = random.Random(3)
    with prices.open("w") as rows, news.open("w") as items:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(NUM_DAYS):
            date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
            for symbol in ("AAA", "BBB", "CCC"):
                close = 100.0 * (1 + rng.gauss(0, 0.01))
                rows.write(
                    f"{date}T21:00:00Z,{symbol},100,{max(close, 100) + 1:.4f},{min(close, 100) - 1:.4f},{close:.4f},9\n"
                )
            tags = rng.choice(([], ["AAA"], ["BBB", "CCC"]))
            item = {
                "ts": f"{date}T15:00:00Z",
                "id": f"n{day}",
                "headline": told(day),
                "symbols": tags,
            }
            items.write(json.dumps(item) + "\n")
    return [prices, news]


def reading(pair: tuple[Path, Path]) -> list[str]:
    return ["--target", str(pair[0]), "--draft", str(pair[1])]


def decisions(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line)["decision"] for line in (folder / "decisions.jsonl").read_text().splitlines()]


def root(folder: Path) -> str:
    ledger = open_ledger_readonly(folder)
    try:
        return f"{ledger.size}:{ledger.root().hex()}"
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def undisturbed_reading(
    sources: list[Path],
    pair: tuple[Path, Path],
    run_here: Callable[..., None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_here(sources, folder, *reading(pair))
    return folder


def test_every_decision_after_news_holds_a_view_and_who_read(undisturbed_reading: Path) -> None:
    read = [decision["view"] for decision in decisions(undisturbed_reading) if decision["view"]]
    assert len(read) > NUM_DAYS
    models = {
        reader.partition("@")[0]
        for view in read
        for reader in str(view["reader"]).split(READER_SEPARATOR)  # type: ignore[index]
        if not reader.startswith("encoder ")
    }
    assert "target-int8" in models
    assert models <= {"target-int8", "draft-int8", "template-reader/1", "16 answers of target-fp32"}


def test_where_time_is_short_the_draft_reads(
    sources: list[Path],
    pair: tuple[Path, Path],
    run_here: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTFI_PIPELINE__DEADLINE_MS", "70")
    run_here(sources, tmp_path, *reading(pair))
    made = decisions(tmp_path)
    models = {str(made["view"]["reader"]).partition("@")[0] for made in made if made["view"]}  # type: ignore[index]
    assert "draft-int8" in models
    assert "target-int8" not in models
    plans = [one["plan"] for one in made if one["view"]]
    assert "short_deadline" in {reason for plan in plans for reason in plan["reasons"]}  # type: ignore[index]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_killed_while_it_reads_ends_with_the_same_root(
    sources: list[Path],
    pair: tuple[Path, Path],
    start: Callable[..., Process],
    wait_for_lines: Callable[[Path, Process, int], None],
    run_here: Callable[..., None],
    undisturbed_reading: Path,
    tmp_path: Path,
    seed: int,
) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        run = start(sources, tmp_path, *reading(pair))
        wait_for_lines(tmp_path / "decisions.jsonl", run, rng.randrange(100))
        time.sleep(rng.random() * 0.05)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
    run_here(sources, tmp_path, *reading(pair))
    assert root(tmp_path) == root(undisturbed_reading), f"seed {seed}"
    assert (tmp_path / "decisions.jsonl").read_bytes() == (
        undisturbed_reading / "decisions.jsonl"
    ).read_bytes()


def damaged(pair: tuple[Path, Path], folder: Path) -> Path:
    shutil.copytree(pair[1], folder)
    return folder


def missing(pair: tuple[Path, Path], folder: Path) -> Path:
    return folder


def truncated(pair: tuple[Path, Path], folder: Path) -> Path:
    weights = damaged(pair, folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    return folder


def of_unknown_architecture(pair: tuple[Path, Path], folder: Path) -> Path:
    config = damaged(pair, folder) / "config.json"
    config.write_text(
        json.dumps(json.loads(config.read_text()) | {"model_type": "mamba", "architectures": ["Mamba"]})
    )
    return folder


def without_a_tokenizer(pair: tuple[Path, Path], folder: Path) -> Path:
    (damaged(pair, folder) / "tokenizer.json").unlink()
    return folder


def with_another_tokenizer(pair: tuple[Path, Path], folder: Path) -> Path:
    file = damaged(pair, folder) / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["added_tokens"][-1]["content"] = "<other>"
    vocab = tokenizer["model"]["vocab"]
    vocab["<other>"] = vocab.pop("<uncited>", None) or max(vocab.values())
    file.write_text(json.dumps(tokenizer))
    return folder


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (missing, "is not a folder"),
        (truncated, "model.safetensors"),
        (of_unknown_architecture, "mamba"),
        (without_a_tokenizer, "tokenizer.json"),
        (with_another_tokenizer, "different tokenizers"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_draft_that_cannot_serve_stops_the_start_with_one_line(
    sources: list[Path],
    pair: tuple[Path, Path],
    run_here: Callable[..., None],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    spoil: Callable[[tuple[Path, Path], Path], Path],
    told: str,
) -> None:
    draft = spoil(pair, tmp_path / "spoilt")
    with pytest.raises(HtfiError, match=told) as refusal:
        run_here(sources, tmp_path / "out", "--target", str(pair[0]), "--draft", str(draft))
    assert "spoilt" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert capfd.readouterr().err == ""
    assert not (tmp_path / "out" / "decisions.jsonl").exists()
