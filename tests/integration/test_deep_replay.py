"""A reading in depth by a real pair: the same ledger in any folder, and every answer of it written again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from htfi.adapters.stores.snapshot import write_whole
from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision, Rung
from htfi.narrative.answer import ConfidenceCalibration
from htfi.narrative.view_calibration import NUM_MOVE_FEATURES, NUM_WIDTH_FEATURES, ViewCalibration
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.models.loading import write_trust
from htfi.wiring.models.readers import open_readers
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, Settings, encode_settings, load_settings, override
from htfi.wiring.verification import recompute_all, replay_reading
from late_network import ListFeed, ListOutlet, days
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")

NUM_DAYS = 36
MEANING = ViewCalibration(
    (1, 5, 22),
    tuple((0.1 * h,) * NUM_MOVE_FEATURES for h in (1, 2, 3)),
    tuple((0.01 * h,) * NUM_WIDTH_FEATURES for h in (1, 2, 3)),
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folders = write_random_pair(tmp_path_factory.mktemp("pair"))
    for folder in folders:
        write_trust(folder, ConfidenceCalibration(), MEANING)
    return folders


@pytest.fixture(scope="module")
def settings(pair: tuple[Path, Path]) -> Settings:
    made = override(
        override(load_settings(environment={}), "encoding", model="heads"),
        "models",
        target=str(pair[0]),
        draft=str(pair[1]),
    )
    made = override(made, "scheduling", high_divergence=0.05, min_influence=0.0)
    return override(made, "narrative", deep_paths=4)


def run(settings: Settings, folder: Path) -> str:
    write_whole(folder / SETTINGS_FILE, encode_settings(settings))
    ledger = open_ledger(folder, origin=LEDGER_ORIGIN)
    readers = open_readers(settings.models, settings.narrative, settings.decoding)
    build_loop(settings, ListFeed(days(NUM_DAYS, ("AAA", "BBB"))), ledger, ListOutlet(), readers=readers).run(
        lambda: None
    )
    root = ledger.root().hex()
    ledger.close()
    return root


@pytest.fixture(scope="module")
def done(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("run")
    return folder, run(settings, folder)


def decisions(folder: Path) -> Iterator[Decision]:
    log = open_ledger_readonly(folder)
    try:
        yield from [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()


def test_the_root_does_not_depend_on_the_folder(
    done: tuple[Path, str], settings: Settings, tmp_path: Path
) -> None:
    assert run(settings, tmp_path) == done[1]


def test_every_entry_is_derived_again(done: tuple[Path, str]) -> None:
    log = open_ledger_readonly(done[0])
    derived: list[int] = []
    try:
        recompute_all(done[0], log, log.size, lambda num, _: derived.append(num))
        assert derived[-1] == log.size > 0
    finally:
        log.close()


def test_every_answer_of_a_reading_in_depth_is_written_again(
    done: tuple[Path, str], pair: tuple[Path, Path]
) -> None:
    deep = [one for one in decisions(done[0]) if one.amends]
    assert deep
    for one in deep[:3]:
        assert one.plan.rung is Rung.DEEP
        assert one.view is not None
        assert [meant.horizon for meant in one.view.calibrated_effects] == [1, 5, 22]
        again = replay_reading(one, done[0], pair[0])
        assert again.problems == []
        assert "fp32" in again.trace.target
    told = CliRunner().invoke(cli, ["ledger", "replay", str(done[0]), deep[0].id, "--target", str(pair[0])])
    assert told.exit_code == 0, told.output


def test_what_was_changed_in_a_reading_in_depth_is_found(
    done: tuple[Path, str], pair: tuple[Path, Path]
) -> None:
    one = next(one for one in decisions(done[0]) if one.amends)
    view = one.view
    assert view is not None
    assert view.trace is not None
    paths = view.trace.paths
    changes = {
        "different tokens in answer 2": replace(
            view, trace=replace(view.trace, paths=(*paths[:2], paths[3], paths[2]))
        ),
        "answers combine to": replace(view, trace=replace(view.trace, tokens=view.trace.tokens[:-1])),
        "does not follow from the tokens": replace(view, size_sigmas=view.size_sigmas + 0.5),
        "the view does not follow": replace(view, calibrated_effects=()),
    }
    for told, altered in changes.items():
        problems = replay_reading(replace(one, view=altered), done[0], pair[0]).problems
        assert any(told in problem for problem in problems), (told, problems)
