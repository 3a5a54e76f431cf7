"""`htfi eval mini` end to end on a random pair, and whether it notices an answer that does not come from the words."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from htfi.domain.generation import Completion, ControlToken, PlainText, PromptDialect
from htfi.narrative.answer import DIRECTIONS, MAX_CITED
from htfi.narrative.question import build_prompt
from htfi_eval.eval.mini.evaluation import CEILING, DRAFT, TARGET, collect_views
from htfi_eval.eval.mini.scores import LEAK_ERRORS, mean, right_direction, training_cases, unseen_cases
from htfi_eval.eval.mini.table import notes
from htfi_eval.main import evaluate
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED
from random_pair import write_random_pair

GOALS = ("direction_accuracy_gain", "match_rate_view", "match_rate_path")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return write_random_pair(tmp_path_factory.mktemp("pair"))


def _run(pair, *more):
    target, draft = pair
    arguments = ["mini", "--target", str(target), "--draft", str(draft), "--stories", "30"]
    return CliRunner().invoke(
        evaluate, [*arguments, "--training-stories", "200", *more], catch_exceptions=False
    )


@pytest.fixture(scope="module")
def told(pair, tmp_path_factory):
    """What the command writes: its figures and its page."""
    out = tmp_path_factory.mktemp("told")
    done = _run(pair, "--json", str(out / "mini.json"), "--html", str(out / "mini.html"))
    assert done.exit_code == 0
    return json.loads((out / "mini.json").read_text()), (out / "mini.html").read_text()


def test_the_command_reports_the_goals_beside_baselines(told):
    metrics = told[0]["metrics"]
    assert set(GOALS) <= set(metrics)
    assert all(0.0 <= metrics[name] <= 1.0 for name in GOALS[1:])
    # nothing was learnt, so counting tokens expects them better than a random network does
    assert metrics["perplexity_path_target"] > metrics["perplexity_path_unigram"]
    assert metrics["direction_accuracy_ceiling"] > metrics["direction_accuracy_target"]


def test_the_page_stands_alone(told):
    page = told[1]
    assert page.count("<svg") >= 2
    assert not any(sign in page for sign in ("http:", "https:", "<script src", "@@"))


def test_without_scikit_learn_the_table_says_what_to_install_and_the_rest_is_the_same(
    pair, told, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    done = _run(pair, "--json", str(tmp_path / "mini.json"))
    assert done.exit_code == 0
    without = json.loads((tmp_path / "mini.json").read_text())
    assert any("pip install 'htfi-eval[peers]'" in note for note in without["notes"])
    assert "direction_accuracy_gain" not in without["metrics"]
    kept = {name: value for name, value in told[0]["metrics"].items() if name in without["metrics"]}
    without["metrics"] = {name: value for name, value in without["metrics"].items() if "leak" not in name}
    assert len(without["metrics"]) > 20
    assert without["metrics"].items() <= kept.items()


def _headlines(prompt):
    """The texts before the asset's that are no tags."""
    texts = zip(prompt[1:], prompt, strict=False)
    return tuple(
        one.text
        for one, before in texts
        if isinstance(one, PlainText) and before in (ControlToken("says"), ControlToken("wide"))
    )


def _prices(prompt):
    return prompt[-1]


@dataclass
class _Oracle:
    """Knows the truth of every case by a part of its prompt."""

    cases: list
    part: Callable
    version: str = "oracle"
    dialect: PromptDialect = PromptDialect.MINI

    def __post_init__(self):
        self.truths = {
            self.part(build_prompt(case.question, PromptDialect.MINI)[0]): case.truth for case in self.cases
        }

    def write(self, requests):
        return [_answer(self.truths[self.part(request.prompt)].direction) for request in requests]


def _answer(direction):
    fields = dict.fromkeys(("cause", "consistency", "volatility", "confidence"), "0")
    fields |= {f"cite{turn}": "0" for turn in range(MAX_CITED)}
    return Completion(fields | {"words": "", "size": "3", "direction": str(DIRECTIONS.index(direction))})


@pytest.mark.parametrize(("part", "leaks"), [(_headlines, False), (_prices, True)])
def test_an_answer_that_does_not_come_from_the_words_is_noticed(part, leaks):
    """One oracle knows the truth by the headlines, the other by the exact prices: only the latter is a leak."""
    cases = unseen_cases(FIRST_EVALUATION_SEED, 240)
    oracle = _Oracle(cases, part)
    views = collect_views(
        cases, training_cases(200), {TARGET: oracle, DRAFT: oracle}, lambda _: lambda *_: None
    )
    assert mean(right_direction(views.readers[TARGET], views.truth)).value > 0.85
    assert (views.leak_errors(TARGET) > LEAK_ERRORS) == leaks
    assert any("A LEAK" in note for note in notes(views, len(cases))) == leaks
    assert mean(right_direction(views.readers[CEILING], views.truth)).value < 1.0
