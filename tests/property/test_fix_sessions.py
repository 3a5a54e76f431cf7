"""Two FIX sessions, a pipe that breaks anywhere, processes that are killed: every message arrives once, in order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from fix_pair import Pair

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["client sends", "venue sends"]), st.just(0)),
        st.tuples(st.just("bytes move"), st.integers(1, 900)),
        st.tuples(st.just("time passes"), st.integers(1, 40_000)),
        st.tuples(st.sampled_from(["connection breaks", "client is killed", "venue is killed"]), st.just(0)),
    ),
    max_size=120,
)


@given(steps=STEPS, version=st.sampled_from(["FIX.4.4", "FIX.5.0SP2"]))
@settings(max_examples=examples(400))
def test_every_message_arrives_once_and_in_order(steps: list[tuple[str, int]], version: str) -> None:
    pair = Pair.of(version)
    sent: dict[str, list[str]] = {"client": [], "venue": []}
    ends = {"client": pair.client, "venue": pair.venue}
    for what, size in steps:
        if not pair.client.is_connected:
            pair.connect()
        if what.endswith("sends"):
            name = what.split()[0]
            order_id = f"{name}-{len(sent[name])}"
            if pair.send(ends[name], order_id):
                sent[name].append(order_id)
        elif what == "bytes move":
            pair.pump(size)
        elif what == "time passes":
            pair.tick(size)
        else:
            if what.endswith("killed"):
                ends[what.split()[0]].kill()
            pair.break_off()
    pair.break_off()
    pair.log_on()
    assert [one.get(11) for one in pair.venue.delivered] == sent["client"]
    assert [one.get(11) for one in pair.client.delivered] == sent["venue"]


def test_gap_in_the_middle_of_both_ways_is_filled() -> None:
    pair = Pair.of().log_on()
    for number in range(3):
        pair.send(pair.client, f"c{number}")
        pair.send(pair.venue, f"v{number}")
    pair.break_off()  # all six are lost on the way, and both sides ask for what they miss
    pair.log_on()
    pair.send(pair.client, "c3")
    pair.settle()
    assert [(one.get(11), one.get(43)) for one in pair.venue.delivered] == [
        ("c0", "Y"),
        ("c1", "Y"),
        ("c2", "Y"),
        ("c3", ""),
    ]
    assert [one.get(11) for one in pair.client.delivered] == ["v0", "v1", "v2"]
