"""`htfi ledger explain`: the forecast without an item is that of a run without it; named words are those that count.

Also what `narrative.trace` records: weights of words and digests of states, computed again to the bit, and marked in
the report; and the keyed noise of readings, which only its key writes again.
"""

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from msgspec import UNSET
from msgspec.structs import replace

from archives import unpack
from checks import nonempty
from htfi.adapters.keys.mark_key import MARK_KEY_FILE, create_mark_key
from htfi.apps.cli.main import cli
from htfi.apps.cli.report.readings import ShownHeadline, headlines_html
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.grammar import CompiledGrammar
from htfi.domain.decision import Decision
from htfi.domain.generation_trace import GenerationTrace, StateDigests
from htfi.narrative.answer import view_grammar
from htfi.narrative.question import Question, build_prompt, shown_items
from htfi.pipeline.audit.attribution import RecordedReading, WordWeight, reading_words, same_states
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.explanation import explain_forecast, recorded_reading
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.run import LEDGER_ORIGIN
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")

ARCHIVE = Path(__file__).parents[1] / "data" / "ledgers" / "run-traced.tar.xz"
NUM_DAYS, NEWS_DAY = 30, 28
ITEMS = {
    "n1": "Acme cuts its outlook after weak orders",
    "n2": "Regulator opens an inquiry into Acme",
    "n3": "Acme wins a large contract from a ministry",
}
ENVIRONMENT = {
    "HTFI_PIPELINE__DEADLINE_MS": "100000",
    "HTFI_NARRATIVE__TEMPERATURE": "1.0",
    "HTFI_SCHEDULING__MIN_INFLUENCE": "0.0",
    "HTFI_SCHEDULING__HIGH_DIVERGENCE": "1.0",
    "HTFI_TRIGGERS__ENABLED": "false",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_random_pair(tmp_path_factory.mktemp("pair"))


def run_with(
    folder: Path, pair: tuple[Path, Path], names: Sequence[str], out: str = "out", **environment: str
) -> Path:
    """A run over thirty days of one symbol, with these items on one of the last days."""
    folder.mkdir(exist_ok=True)
    rng = random.Random(3)
    with (folder / "prices.csv").open("w") as rows, (folder / "news.jsonl").open("w") as items:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(NUM_DAYS):
            date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
            close = 100.0 * (1 + rng.gauss(0, 0.01))
            rows.write(f"{date}T21:00:00Z,ACME,100,103,97,{close:.4f},9\n")
            for name in names if day == NEWS_DAY else ():
                item = {
                    "ts": f"{date}T15:00:00Z", "id": name, "headline": ITEMS[name], "symbols": ["ACME"],
                }  # fmt: skip
                items.write(json.dumps(item) + "\n")
    files = [str(folder / name) for name in ("prices.csv", "news.jsonl")]
    models = ["--target", str(pair[0]), "--draft", str(pair[1])]
    done = CliRunner(env=ENVIRONMENT | environment).invoke(
        cli, ["run", *files, *models, "--plain", "--no-report", "--out", str(folder / out)]
    )
    assert done.exit_code == 0, done.output
    return folder / out


def decisions(run: Path) -> list[Decision]:
    log = open_ledger_readonly(run)
    try:
        return [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def trace_of(decision: Decision) -> GenerationTrace:
    assert decision.view is not None
    assert decision.view.trace is not None
    return decision.view.trace


def states_of(decision: Decision) -> StateDigests:
    states = trace_of(decision).states
    assert states is not UNSET
    return states


def read_in(run: Path) -> Decision:
    """The one decision of a run that a model read for."""
    (found,) = [one for one in decisions(run) if one.view is not None and one.view.trace is not None]
    return found


def explained(run: Path, decision: Decision, pair: tuple[Path, Path]):
    log = open_ledger_readonly(run)
    try:
        index = [one.id for one in decisions(run)].index(decision.id)
        return explain_forecast(run, log, index, decision, pair[0], trace=False)
    finally:
        log.close()


@pytest.fixture(scope="module")
def whole(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_with(tmp_path_factory.mktemp("whole"), pair, list(ITEMS))


@pytest.mark.parametrize("left_out", ["n1", "n2"])
def test_the_forecast_without_an_item_is_that_of_a_run_without_it(
    whole: Path, pair: tuple[Path, Path], tmp_path: Path, left_out: str
) -> None:
    decision = read_in(whole)
    assert decision.forecast.tilt is not None
    (effect,) = [one for one in explained(whole, decision, pair).effects if one.id == left_out]
    other = read_in(run_with(tmp_path / "less", pair, [name for name in ITEMS if name != left_out]))
    assert other.id == decision.id
    assert other.view is not None
    assert effect.view_without is not None
    assert effect.view_without.direction == other.view.direction
    assert effect.quantiles_without == other.forecast.quantiles


def test_an_item_that_counted_changes_the_forecast(whole: Path, pair: tuple[Path, Path]) -> None:
    decision = read_in(whole)
    without = [one.quantiles_without for one in explained(whole, decision, pair).effects]
    assert len(without) == len(ITEMS)
    assert sum(quantiles != decision.forecast.quantiles for quantiles in without) >= 2


def test_the_forecast_without_the_only_item_is_that_of_the_numbers(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    run, none = run_with(tmp_path / "one", pair, ["n1"]), run_with(tmp_path / "none", pair, [])
    decision = read_in(run)
    (effect,) = explained(run, decision, pair).effects
    (numbers,) = [one for one in decisions(none) if one.id == decision.id]
    assert effect.quantiles_without == numbers.forecast.quantiles != decision.forecast.quantiles
    assert "no news was considered" in explain(none, numbers.id, "--target", pair[0]).output


def test_marked_readings_have_the_tokens_of_plain_decoding(
    whole: Path, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    key = create_mark_key(tmp_path / MARK_KEY_FILE)
    for name in ("plain", "tree"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MARK_KEY_FILE).write_bytes((tmp_path / MARK_KEY_FILE).read_bytes())
        run_with(tmp_path, pair, list(ITEMS), name, HTFI_DECODING__STRATEGY=name)
    plain, tree = (read_in(tmp_path / name) for name in ("plain", "tree"))
    assert trace_of(plain).tokens == trace_of(tree).tokens != trace_of(read_in(whole)).tokens
    assert trace_of(plain).strategy != trace_of(tree).strategy
    assert plain.models["mark"] == tree.models["mark"] == key.id
    assert trace_of(plain).seed == trace_of(read_in(whole)).seed  # the record shows no seed of the key


# --- on a recorded run of the shipped models, with narrative.trace and a marking key


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("traced")
    unpack(ARCHIVE, parent)
    return parent / "run-traced"


@pytest.fixture(scope="module")
def reading(traced: Path) -> tuple[Decision, RecordedReading]:
    """The first reading on several headlines by the target in int8."""
    log = open_ledger_readonly(traced)
    try:
        for index, decision in enumerate(decisions(traced)):
            trace = decision.view.trace if decision.view is not None else None
            if trace is None or trace.paths or trace.num_items < 2:
                continue
            found = recorded_reading(traced, log, index, decision)
            assert found is not None
            return decision, found
    finally:
        log.close()
    raise AssertionError("the archive holds no reading on two headlines")


def explain(run: Path, *words: object) -> Result:
    return CliRunner().invoke(cli, ["ledger", "explain", str(run), *map(str, words)])


def test_every_reading_of_a_traced_run_records_its_states_and_words(traced: Path) -> None:
    read = [one for one in decisions(traced) if one.view is not None and one.view.trace is not None]
    assert len(read) > 10
    for one in read:
        states, trace = states_of(one), trace_of(one)
        assert len(states.hidden) == len(states.attention) == 64
        assert trace.shown is not UNSET
        assert [len(item.headline.split()) for item in trace.shown] == [*map(len, states.words)]
        assert any(weight for of_item in states.words for weight in of_item)


def log_likelihood(found: RecordedReading, question: Question) -> float:
    """Of what the answer chose outside its free words, one pass of the model for every token."""
    vocabulary, tokens = found.opened.vocabulary, list(found.trace.tokens)
    grammar = CompiledGrammar(view_grammar(vocabulary.dialect, found.trace.num_items), vocabulary)
    prompt = [*found.opening, *vocabulary.encode(build_prompt(question, vocabulary.dialect)[0])]
    total = 0.0
    for place, step, name in grammar.open_positions(tokens):
        if name != "words":
            ids = np.array([[*prompt, *tokens[:place]]], np.int64)
            scores = forward_text(found.opened.network, ids).logits[0, -1, step.allowed.ids].astype(float)
            chosen = scores[step.allowed.ids.tolist().index(tokens[place])]
            total += chosen - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
    return total


def test_named_words_are_those_whose_removal_changes_the_answer_most(
    reading: tuple[Decision, RecordedReading],
) -> None:
    decision, found = reading
    item = shown_items(found.question)[0]
    recorded = states_of(decision).words[0]
    words = item.headline.split()
    assert len(words) == len(recorded) >= 4
    whole = log_likelihood(found, found.question)
    changes: list[float] = []
    for place in range(len(words)):
        rest = replace(item, headline=" ".join([*words[:place], *words[place + 1 :]]))
        asked = replace(found.question, items=(rest, *shown_items(found.question)[1:]))
        changes.append(whole - log_likelihood(found, asked))
    assert np.array(recorded) / 1e4 == pytest.approx(np.array(changes), abs=1e-3)
    assert int(np.argmax(recorded)) == int(np.argmax(changes))


def test_weights_name_the_words_of_their_headline(reading: tuple[Decision, RecordedReading]) -> None:
    decision, found = reading
    weighed = reading_words(found)
    for place, item in enumerate(nonempty(shown_items(found.question))):
        words = weighed[item.id]
        assert [item.headline[one.begin : one.end] for one in words] == item.headline.split()
        assert tuple(round(1e4 * one.nats) for one in words) == states_of(decision).words[place]


def test_states_are_computed_again_to_the_bit_and_a_changed_one_is_found(
    reading: tuple[Decision, RecordedReading],
) -> None:
    decision, found = reading
    states = states_of(decision)
    assert same_states(found) is True
    (first, *rest), *others = states.words
    for changed in (
        replace(states, hidden="0" * 64),
        replace(states, attention="0" * 64),
        replace(states, words=((first + 1, *rest), *others)),
    ):
        other = RecordedReading(
            found.question,
            replace(found.trace, states=changed),
            found.seeds,
            found.opened,
            found.opening,
            found.config,
        )
        assert same_states(other) is False


def test_explain_names_words_and_computes_states_again(
    traced: Path, reading: tuple[Decision, RecordedReading]
) -> None:
    done = explain(traced, reading[0].id, "--trace")
    assert done.exit_code == 0, done.output
    assert "carried by: " in done.output
    assert "words' weights and digests of states: computed again to the bit" in done.output
    body = json.loads(explain(traced, reading[0].id, "--trace", "--json").output)
    assert body["has_same_states"] is True
    assert body["content_marking"]["artificially_generated"] is True
    assert [one["id"] for one in body["items"] if one["words"]]


def test_a_tampered_digest_is_one_line_and_status_1(
    traced: Path, reading: tuple[Decision, RecordedReading], tmp_path: Path
) -> None:
    """A ledger that its keeper wrote and signed anew, with another digest in one entry."""
    (tmp_path / "settings.json").write_bytes((traced / "settings.json").read_bytes())
    (tmp_path / MARK_KEY_FILE).write_bytes((traced / MARK_KEY_FILE).read_bytes())
    view, trace = reading[0].view, trace_of(reading[0])
    assert view is not None
    changed = replace(states_of(reading[0]), attention="0" * 64)
    forged = replace(reading[0], view=replace(view, trace=replace(trace, states=changed)))
    ledger = open_ledger(tmp_path, origin=LEDGER_ORIGIN, durable=False)
    ledger.append([encode_entry(forged if one.id == forged.id else one) for one in decisions(traced)])
    ledger.close()
    done = explain(tmp_path, forged.id, "--trace")
    assert done.exit_code == 1
    assert "the model's states are not those that were recorded" in str(done.exception or done.output)


def test_without_its_key_a_marked_reading_is_verified_but_not_written_again(
    traced: Path, reading: tuple[Decision, RecordedReading], tmp_path: Path
) -> None:
    for file in traced.iterdir():
        if file.name != MARK_KEY_FILE:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    name = reading[0].models["mark"]
    verified = CliRunner().invoke(cli, ["ledger", "verify", str(tmp_path), "--recompute"])
    assert verified.exit_code == 0, verified.output
    assert "noise follows from marking key" in verified.output
    for command in ("replay", "explain"):
        done = CliRunner().invoke(cli, ["ledger", command, str(tmp_path), reading[0].id])
        assert done.exit_code == 1
        assert f"its noise follows from marking key {name}" in str(done.exception or done.output)
    create_mark_key(tmp_path / MARK_KEY_FILE)
    done = CliRunner().invoke(cli, ["ledger", "replay", str(tmp_path), reading[0].id])
    assert "and the key there is" in str(done.exception or done.output)


def test_the_report_marks_the_words_of_a_traced_run(traced: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = CliRunner().invoke(cli, ["report", str(traced), "--out", str(page)])
    assert done.exit_code == 0, done.output
    html = page.read_text(encoding="utf-8")
    assert "Marked words carried the view" in html
    assert html.count('<mark class="w3"') >= 5
    assert "content_marking" not in html
    assert '<meta name="artificially-generated" content="true">' in html


def test_a_headline_in_the_report_is_escaped_and_marks_are_by_strength() -> None:
    shown = ShownHeadline(
        "<b> falls hard today", (WordWeight(0, 3, 0.4), WordWeight(4, 9, 0.9), WordWeight(10, 14, 0.01))
    )
    assert headlines_html([shown, ShownHeadline("quiet", None)]) == (
        '<ul class="shown"><li><mark class="w2" title="+0.40 nats">&lt;b&gt;</mark> '
        '<mark class="w3" title="+0.90 nats">falls</mark> hard today</li></ul>'
    )
    assert headlines_html([ShownHeadline("quiet", None)]) == ""
