"""A run over a link in changing weather: its readings, in time, provisional and late, are all written again."""

import random
from pathlib import Path

import pytest
from msgspec import UNSET

from checks import nonempty
from htfi.adapters.stores.snapshot import write_whole
from htfi.decoding.config import EdgeConfig
from htfi.decoding.link.client.generator import ExpectedTarget, LinkedGenerator
from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.ports import PlacementQuery, PlannedPlacement
from htfi.domain.decision import Rung
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.models.loading import open_model
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, encode_settings, load_settings, override
from htfi.wiring.verification import recompute_all, replay_reading
from late_network import ListFeed, ListOutlet, days, with_market_news
from linked_world import FakeCloud, Plan, World, WorldTransport
from random_pair import write_random_pair

pytestmark = pytest.mark.usefixtures("models_opened_once")


class AnyWay(Plan):
    """Places each request somewhere else and otherwise, by dice."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(DraftMode.PIPELINED)
        self._dice = dice

    def place(self, wanted: PlacementQuery, clouds: tuple[str, ...]) -> PlannedPlacement:
        cloud = self._dice.choice([*clouds, *clouds, ""]) if clouds else ""
        window = self._dice.randrange(1, 7)
        return self.placed._replace(
            cloud=cloud,
            draft_mode=self._dice.choice(list(DraftMode)),
            window=window,
            in_flight=self._dice.randrange(1, 4),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "with_facts"),
    [*(pytest.param(seed, False, marks=pytest.mark.slow) for seed in (0, 1)), (2, True)],
)
def test_every_reading_of_a_run_in_any_weather_is_written_again(
    tmp_path: Path, seed: int, with_facts: bool
) -> None:
    dice = random.Random(seed)
    pair = write_random_pair(tmp_path / "pair", with_facts=with_facts)
    settings = override(
        override(load_settings(environment={}), "encoding", model="auto" if with_facts else "heads"),
        "pipeline",
        deadline_ms=150.0,
        late_poll_ms=0.0,
    )
    settings = override(settings, "narrative", temperature=1.0)
    run = tmp_path / "run"
    run.mkdir()
    write_whole(run / SETTINGS_FILE, encode_settings(settings))
    target, draft = (open_model(path, settings.models.precision) for path in pair)
    world = World()
    transport = WorldTransport(world)
    clouds = [FakeCloud(world, f"cloud{k}", target.plain_generator(settings.decoding)) for k in range(2)]
    for cloud in clouds:
        cloud.welcome_as = {"tokenizer": target.tokenizer.digest, "target": target.folder.digest}
        transport.connect(cloud)
    author = LinkedGenerator(
        draft.plain_generator(settings.decoding),
        ExpectedTarget(target.version, target.folder.digest),
        "edge1",
        transport,
        AnyWay(dice),
        lambda: [cloud.node for cloud in clouds],
        world.clock,
        lambda *_: None,
        EdgeConfig(),
    )
    author.wait_ready(1.0)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(author, settings.narrative, target.trust, draft.trust),
    }

    def weather() -> None:
        world.run_until(world.now_s + 0.02, lambda: False)
        for cloud in clouds:
            if dice.random() < 0.2:
                cloud.rtt_ms = dice.choice((1.0, 10.0, 40.0, 120.0))
            if dice.random() < 0.05:
                transport.cut(cloud.node)
                transport.connect(cloud)

    def wait() -> bool:
        world.run_until(world.now_s + 0.05, lambda: False)
        return world.now_s < 1_000.0

    ledger = open_ledger(run, origin=LEDGER_ORIGIN)
    items = days(60, ("AAA", "BBB"))
    feed = ListFeed(with_market_news(items) if with_facts else items)
    loop = build_loop(settings, feed, ledger, ListOutlet(), readers=readers)
    loop._keep_waiting = wait
    loop.run(weather)
    ledger.close()
    log = open_ledger_readonly(run)
    try:
        recompute_all(run, log, log.size, lambda *_: None)
        found = [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()
    worded = [one for one in found if one.view is not None and one.view.trace is not None]
    for one in worded:
        assert replay_reading(one, run, pair[0], pair[1]).problems == [], f"seed {seed}: {one.id}"
    assert len(worded) > 20
    shown = [item for one in worded for item in nonempty(one.view.trace.shown)]  # type: ignore[union-attr]
    assert any(item.facts is not UNSET for item in shown) == with_facts
    rounds = [told for one in worded if one.view and one.view.trace for told in one.view.trace.rounds]
    assert sum(len(told.drafted) for told in rounds) > sum(len(told.accepted) for told in rounds) > 20
    told = [one for one in found if one.awaits_amendment]
    assert 3 < len(told) < len(worded) - 3, f"seed {seed}: {len(told)} of {len(worded)} were late"
    assert {one.id for one in told} == {one.amends for one in found if one.amends}, f"seed {seed}"
