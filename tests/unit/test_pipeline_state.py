"""Input digests, snapshots and settings: the same in the same circumstances, refused in others."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Trade
from htfi.pipeline.components import FOLD_EVENTS, InputChain
from htfi.pipeline.intake.merged_feed import PacedFeed
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.wiring.settings import decode_settings, encode_settings, load_settings, override, settings_digest
from virtual_clock import VirtualClock


def trade(row: int, price: float = 1.0) -> Trade:
    return Trade(row, row, "s", row, "A", price, 1.0)


def test_a_digest_covers_every_event_and_those_before() -> None:
    chains = InputChain(), InputChain()
    for row in range(1, 10):
        chains[0].add(trade(row))
        chains[1].add(trade(row, price=1.0 if row != 3 else 1.0000001))
    first, second = chains[0].close(), chains[1].close()
    assert first.digest != second.digest
    assert (first.num_events, first.rows) == (9, {"s": (1, 9)})
    for chain in chains:
        chain.add(trade(10))
    assert chains[0].close().digest != chains[1].close().digest


def test_without_events_the_digest_stays() -> None:
    chain = InputChain()
    chain.add(trade(1))
    before = chain.close()
    assert chain.close().digest == before.digest


@pytest.mark.parametrize("cut", [1, FOLD_EVENTS - 1, FOLD_EVENTS, FOLD_EVENTS + 1])
def test_a_chain_goes_on_from_its_state_as_if_never_stopped(cut: int) -> None:
    whole, part = InputChain(), InputChain()
    for row in range(1, cut + 1):
        whole.add(trade(row))
        part.add(trade(row))
    rest = InputChain()
    rest.restore(decode_state(encode_state(part.state())))
    for row in range(cut + 1, cut + 50):
        whole.add(trade(row))
        rest.add(trade(row))
    assert rest.close() == whole.close()
    assert rest.missing_share() == whole.missing_share()


def test_rows_that_never_became_events_show_as_missing() -> None:
    chain = InputChain()
    for row in range(1, 1001):
        if row % 10:
            chain.add(trade(row))
    assert chain.missing_share() == pytest.approx(0.1, abs=0.002)


PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.text()
)


@given(
    st.dictionaries(st.text(), st.one_of(PLAIN, st.lists(PLAIN), st.dictionaries(st.text(), PLAIN))),
    st.booleans(),
)
def test_plain_state_survives_its_encoding(state: dict[str, object], compress: bool) -> None:
    assert decode_state(encode_state(state, compress=compress)) == state


def test_a_compressed_state_is_smaller() -> None:
    state = {"columns": np.zeros(1000)}
    assert len(encode_state(state, compress=True)) < len(encode_state(state)) // 10


def test_arrays_survive_their_encoding_bit_for_bit_and_stay_writable() -> None:
    arrays = [
        np.array([[1.5, np.nan], [np.inf, -0.0]]),
        np.zeros((0, 3), np.int8),
        np.arange(6, dtype=np.float32)[::2],
    ]
    found = decode_state(encode_state({"arrays": arrays}))["arrays"]
    for before, after in zip(arrays, found, strict=True):
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        assert after.tobytes() == before.tobytes()
        assert after.flags.writeable


@pytest.mark.parametrize("data", [b"", b"\x00", b"nonsense", encode_state({})[:-1], b"\x81\xa6format\x63"])
def test_a_damaged_snapshot_is_no_state(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="the saved state is"):
        decode_state(data)


@pytest.mark.parametrize("compress", [False, True])
def test_a_snapshot_with_any_bit_flipped_is_no_state(compress: bool) -> None:
    whole = encode_state({"numbers": [1, 2.5], "array": np.arange(3.0)}, compress=compress)
    assert len(whole) > 60
    for at in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            with pytest.raises(IntegrityError, match="the saved state is"):
                decode_state(bytes(flipped))


def test_settings_come_from_defaults_then_file_then_environment(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[market]\nbar = "5m"\n[pipeline]\ndeadline_ms = 10\n')
    settings = load_settings(
        file, {"HTFI_PIPELINE__DEADLINE_MS": "20", "HTFI_FORECASTING__HORIZONS": "[1, 3]"}
    )
    assert settings.market.bar == "5m"
    assert settings.pipeline.deadline_ms == 20
    assert settings.forecasting.horizons == (1, 3)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"HTFI_MARKET__BARR": "1m"}, "unknown key 'barr'"),
        ({"HTFI_MARKT__BAR": "1m"}, "unknown table 'markt'"),
        ({"HTFI_MARKET__BAR": "soon"}, "'soon' is not a duration"),
        ({"HTFI_PIPELINE__GROUP_ENTRIES": "many"}, "group_entries"),
        ({"HTFI_PIPELINE__DEADLINE_MS": "-1"}, "deadline_ms"),
        ({"HTFI_FORECASTING__LEVELS": "[0.5, 0.1, 0.9]"}, "levels"),
    ],
)
def test_an_unknown_or_malformed_setting_stops_the_start(environment: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match="the environment") as caught:
        load_settings(environment=environment)
    assert told in str(caught.value)


def test_the_digest_follows_what_shapes_a_decision_and_nothing_else() -> None:
    settings = load_settings(environment={})
    assert settings_digest(override(settings, "pipeline", group_ms=1.0)) == settings_digest(settings)
    assert settings_digest(override(settings, "policy", max_band_width=0.1)) != settings_digest(settings)
    assert settings_digest(decode_settings(encode_settings(settings))) == settings_digest(settings)


def test_a_virtual_clock_moves_only_forward() -> None:
    clock = VirtualClock(5)
    clock.advance(7)
    assert clock.now_ns() == 12
    with pytest.raises(InvalidInput):
        clock.advance(-1)


def test_a_paced_replay_waits_as_long_as_the_events_were_apart() -> None:
    now_ns, waits = 0, []

    def sleep(seconds: float) -> None:
        nonlocal now_ns
        waits.append(round(seconds, 9))
        now_ns += round(seconds * 1e9)

    class Feed:
        def __iter__(self):
            return iter([trade(k * 2 * 10**9) for k in (0, 1, 1, 3)])

    assert len(list(PacedFeed(Feed(), 4.0, lambda: now_ns, sleep))) == 4
    assert waits == [0.5, 1.0]
