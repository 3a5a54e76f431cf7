"""Readings of an edge with a marking key: its cloud writes with keyed noise, and only the key's holder replays them."""

from pathlib import Path

import pytest

from htfi.adapters.keys.mark_key import MARK_KEY_FILE, create_mark_key
from htfi.adapters.stores.snapshot import write_whole
from htfi.decoding.config import EdgeConfig
from htfi.decoding.link.client.generator import ExpectedTarget, LinkedGenerator
from htfi.decoding.link.frames import DraftMode
from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
from htfi.wiring.loop import build_loop
from htfi.wiring.marking import trace_of
from htfi.wiring.models.loading import open_model
from htfi.wiring.run import LEDGER_ORIGIN
from htfi.wiring.settings import SETTINGS_FILE, encode_settings, load_settings, override
from htfi.wiring.verification import recompute_all, replay_reading
from late_network import ListFeed, ListOutlet, days
from linked_world import FakeCloud, Plan, World, WorldTransport
from random_pair import write_random_pair


@pytest.mark.slow
def test_an_edges_readings_take_keyed_noise_and_are_written_again_with_the_key(tmp_path: Path) -> None:
    pair = write_random_pair(tmp_path / "pair")
    settings = override(load_settings(environment={}), "encoding", model="heads")
    settings = override(settings, "pipeline", deadline_ms=150.0, late_poll_ms=0.0)
    settings = override(settings, "narrative", temperature=1.0)
    run = tmp_path / "run"
    run.mkdir()
    key = create_mark_key(run / MARK_KEY_FILE)
    write_whole(run / SETTINGS_FILE, encode_settings(settings))
    target, draft = (open_model(path, settings.models.precision) for path in pair)
    world = World()
    transport = WorldTransport(world)
    cloud = FakeCloud(world, "cloud0", target.plain_generator(settings.decoding))
    cloud.welcome_as = {"tokenizer": target.tokenizer.digest, "target": target.folder.digest}
    transport.connect(cloud)
    author = LinkedGenerator(
        draft.plain_generator(settings.decoding),
        ExpectedTarget(target.version, target.folder.digest),
        "edge1",
        transport,
        Plan(DraftMode.PLAIN),
        lambda: [cloud.node],
        world.clock,
        lambda *_: None,
        EdgeConfig(),
    )
    author.wait_ready(1.0)
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(author, settings.narrative, target.trust, draft.trust, key=key),
    }
    ledger = open_ledger(run, origin=LEDGER_ORIGIN)
    feed = ListFeed(days(26, ("AAA",)))
    loop = build_loop(settings, feed, ledger, ListOutlet(), readers=readers, mark_key_id=key.id)
    loop.run(lambda: world.run_until(world.now_s + 0.02, lambda: False))
    ledger.close()
    log = open_ledger_readonly(run)
    try:
        recompute_all(run, log, log.size, lambda *_: None, pair)
        found = [one for one in map(decode_entry, log.entries()) if trace_of(one) is not None]
    finally:
        log.close()
    assert len(found) > 5
    traces = [trace for one in found if (trace := trace_of(one)) is not None]
    assert all(trace.place for trace in traces)  # the cloud wrote
    assert {trace.seed for trace in traces}.isdisjoint(key.seeds())
    for one in found:
        assert replay_reading(one, run, pair[0], pair[1]).problems == []
    (run / MARK_KEY_FILE).unlink()
    with pytest.raises(InvalidInput, match=f"its noise follows from marking key {key.id}"):
        replay_reading(found[0], run, pair[0], pair[1])
    unmarked = [one for one in found if one.models.get("mark") != key.id]
    assert unmarked == []
