"""A pair of models over simulated links: the tokens of plain decoding, every reading answered, by its deadline."""

import shutil
from pathlib import Path

import msgspec
import pytest

from htfi.decoding.config import DecodingConfig
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import PromptDialect
from htfi.governance.sandbox.results import Bounds, LinkOutcome, TrialEnding, TrialResult
from htfi.governance.sandbox.trials import SandboxTrial, TrialLink, TrialMarket, trials_of
from htfi.governance.sandbox.verdict import SandboxCheck, failed_checks
from htfi.pipeline.sandbox.link_trial import DEADLINE_MS, NUM_READINGS, link_figures, link_requests
from htfi.pipeline.sandbox.messages import LinkReading
from htfi.wiring.sandbox.candidates import open_candidate
from htfi.wiring.sandbox.running import Contender, run_links
from htfi.wiring.sandbox.simulated_link import SimulatedPair, open_simulated_pair
from htfi.wiring.settings import Settings, override
from random_pair import write_random_pair

LINKS = [link for link in TrialLink if link is not TrialLink.NONE]
GOOD = LinkOutcome(
    num_readings=16, num_in_time=16, num_other_tokens=0, num_stalled=0, num_late=0, p95_ms=90.0
)


def trial(link: TrialLink, seed: int = 11) -> SandboxTrial:
    return SandboxTrial(name=link.value, market=TrialMarket.CALM, link=link, seed=seed)


def settings_of(folder: Path) -> Settings:
    return override(Settings(), "models", target=str(folder / "target"), draft=str(folder / "draft"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("pair")
    write_random_pair(found)
    return found


@pytest.fixture(scope="module")
def pair(folder: Path) -> SimulatedPair:
    return open_simulated_pair(settings_of(folder))


@pytest.mark.parametrize("link", LINKS)
def test_every_reading_has_the_tokens_of_plain_decoding(pair: SimulatedPair, link: TrialLink):
    found = link_figures(pair.run(trial(link)))
    assert (found.num_readings, found.num_other_tokens, found.num_stalled) == (NUM_READINGS, 0, 0)
    if link is TrialLink.CUTS:
        assert found.num_in_time <= NUM_READINGS - NUM_READINGS // 4  # no frame passed while these were read
    else:
        assert found.num_in_time > 0


def test_clouds_with_another_target_are_found(folder: Path, tmp_path: Path):
    """As when a target's logits depend on what else it computes: plain decoding writes other tokens."""
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    write_random_pair(tmp_path / "again", target_hidden=48)
    shutil.copy(tmp_path / "again" / "target" / "model.safetensors", other / "target")
    shutil.copy(tmp_path / "again" / "target" / "config.json", other / "target")
    pair, alone = (open_simulated_pair(settings_of(place)) for place in (folder, other))
    pair.target.__dict__["plain_generator"] = alone.target.plain_generator
    found = link_figures(pair.run(trial(TrialLink.LOSS)))
    assert found.num_other_tokens > NUM_READINGS // 2


def test_confined_pair_answers_as_one_that_is_not(folder: Path):
    models = {role: str(folder / role) for role in ("target", "draft")}
    contender = Contender({"models": models}, folders=tuple(map(Path, models.values())), reads_news=True)
    found = run_links(contender, [trial(LINKS[0])], Bounds(open_s=120.0))
    assert found.stopped is None, found.stopped
    assert [(one.num_readings, one.num_other_tokens, one.num_stalled) for one in found.figures] == [
        (NUM_READINGS, 0, 0)
    ]
    assert found.enforcement.enforced


def test_pair_that_cannot_be_opened_ends_its_trial(folder: Path, tmp_path: Path):
    broken = Path(shutil.copytree(folder / "draft", tmp_path / "draft"))
    (broken / "model.safetensors").write_bytes(b"nothing")
    contender = Contender({"models": {"draft": str(broken)}}, folders=(broken,), reads_news=True)
    found = run_links(contender, [trial(LINKS[0])], Bounds(open_s=120.0))
    assert found.stopped is not None
    assert (found.stopped.ending, found.figures) == (TrialEnding.REFUSED, [])


def test_same_seed_asks_the_same():
    first, again, other = (
        link_requests(trial(TrialLink.LOSS, seed), PromptDialect.MINI) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert len({one.id for one in first}) == NUM_READINGS


def test_figures_count_late_and_unanswered_readings():
    found = link_figures(
        [
            LinkReading(50.0, in_time=True, is_answered=True, same_tokens=True),
            LinkReading(60.0, in_time=True, is_answered=True, same_tokens=False),
            LinkReading(DEADLINE_MS + 1.0, is_answered=True, same_tokens=True),
            LinkReading(DEADLINE_MS - 1.0),
        ]
    )
    assert (found.num_in_time, found.num_other_tokens, found.num_stalled, found.num_late) == (2, 1, 1, 1)


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"num_other_tokens": 1}, SandboxCheck.SAME_TOKENS),
        ({"num_stalled": 1}, SandboxCheck.NO_STALL),
        ({"num_readings": 0, "num_in_time": 16}, SandboxCheck.NO_STALL),
        ({"num_late": 2}, SandboxCheck.DEADLINE),
        ({"num_in_time": 11}, SandboxCheck.DEADLINE),
    ],
)
def test_each_check_of_a_link_rejects_alone(changed: dict[str, int], check: SandboxCheck):
    def result(link: LinkOutcome) -> TrialResult:
        return TrialResult(trial="cuts", ending=TrialEnding.FINISHED, link=link, champion_link=GOOD)

    assert failed_checks([result(GOOD)], 1) == []
    found = failed_checks([result(msgspec.structs.replace(GOOD, **changed))], 1)
    assert [one.check for one in found] == [check]


def test_link_is_tried_where_the_candidate_can_change_it(folder: Path, tmp_path: Path):
    cases = {
        "[forecasting]\newma_decay = 0.9\n": (False, ()),
        "[decoding]\nmax_draft_length = 6\n": (True, ()),
        "[edge]\nmargin_ms = 9.0\n": (True, ()),
        "[decoding]\nrule = 'rejection'\n": (
            False, ("the link between edge and cloud, which needs decoding.rule 'coupled'",),
        ),
    }  # fmt: skip
    for text, expected in cases.items():
        file = tmp_path / "s.toml"
        file.write_text(text)
        found = open_candidate(file)
        assert (found.over_link, found.not_tried) == expected, text
    assert open_candidate(folder).over_link
    names = [one.name for one in trials_of(1, reads_news=False, is_numeric=False, num_bars=9, over_link=True)]
    assert names == [f"edge and cloud: {link.value}" for link in LINKS]


def test_link_needs_the_shared_noise():
    with pytest.raises(InvalidInput, match="needs 'coupled'"):
        open_simulated_pair(override(Settings(), "decoding", rule="rejection"))


def test_engines_of_a_trial_fit_into_its_memory():
    assert (
        4 * (open_simulated_pair(Settings()).settings.decoding.batch_bytes)
        <= Bounds().memory_bytes // 2
        < 4 * DecodingConfig().batch_bytes
    )
