"""Whatever is opened, extended, rewound, forked and closed in whatever order: each row's logits are its tokens' own."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.decoding.config import DecodingConfig
from htfi.decoding.kv_cache import KVRow
from htfi.decoding.ports import Floats, NetworkShape
from htfi.decoding.sessions import KVSessions
from kv_blocks import num_cached, num_free
from tiny_network import TinyNetwork

VOCAB = 23
PER_TOKEN = NetworkShape(2, 2, 8, VOCAB, 512).kv_bytes_per_token
tokens = st.integers(0, VOCAB - 1)


def from_scratch(network: TinyNetwork, ids: list[int]) -> Floats:
    """Logits [T, V] of all tokens in one pass with no past."""
    mask = np.triu(np.full((1, len(ids), len(ids)), -1e9, np.float32), 1)
    past = np.zeros((2, 1, 2, 0, 8), np.float32)
    return network.forward(np.array([ids]), np.arange(len(ids))[None], mask, past, past).logits[0]


@given(data=st.data(), cache_blocks=st.integers(0, 6))
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_row_answers_as_if_it_were_alone_and_new(data: st.DataObject, cache_blocks: int):
    network, check = TinyNetwork(VOCAB), TinyNetwork(VOCAB)
    budget = 14 * 64 * PER_TOKEN
    config = DecodingConfig(
        batch_bytes=budget, cache_bytes=cache_blocks * 4 * PER_TOKEN, block_tokens=4, max_batch=8
    )
    sessions = KVSessions(network, config)
    held: list[tuple[KVRow, list[int]]] = []

    def check_memory() -> None:
        assert sessions.arena.keys.nbytes + sessions.arena.values.nbytes <= budget
        assert sessions.arena.num_rows == len(held)
        num_blocks = sessions.cache.num_blocks
        assert num_free(sessions.cache) + num_cached(sessions.cache) == num_blocks == cache_blocks

    prefix = data.draw(st.lists(tokens, min_size=5, max_size=12))
    for _ in range(data.draw(st.integers(1, 25))):
        act = data.draw(
            st.sampled_from(["open", "open", "extend", "extend", "extend", "rewind", "fork", "close"])
        )
        if act == "open":
            own = data.draw(st.lists(tokens, min_size=1, max_size=6))
            limit = len(prefix) + len(own) + data.draw(st.integers(0, 70))
            if not sessions.has_space(limit):
                continue
            opened = sessions.open([*prefix, *own], limit, data.draw(st.sampled_from([0, len(prefix)])))
            np.testing.assert_allclose(opened.logits, from_scratch(check, [*prefix, *own])[-1], atol=1e-4)
            held.append((opened.row, [*prefix, *own]))
        elif act == "extend":
            some = [(row, ids) for row, ids in held if row.length < row.limit and data.draw(st.booleans())]
            new = [
                data.draw(st.lists(tokens, min_size=1, max_size=min(row.limit - row.length, 5)))
                for row, _ in some
            ]
            if not some:
                continue
            logits = sessions.extend([row for row, _ in some], new)
            for (row, ids), added, after in zip(some, new, logits, strict=True):
                ids += added
                assert row.length == len(ids)
                np.testing.assert_allclose(after, from_scratch(check, ids)[-len(added) :], atol=1e-4)
        elif held:
            place = data.draw(st.integers(0, len(held) - 1))
            row, ids = held[place]
            if act == "rewind":
                length = data.draw(st.integers(0, row.length))
                sessions.rewind(row, length)
                del ids[length:]
            elif act == "fork":
                num = data.draw(st.integers(1, 3))
                if sessions.has_space(*[row.limit] * num):
                    held += [(fork, list(ids)) for fork in sessions.fork(row, num)]
            else:
                sessions.close(row)
                del held[place]
        check_memory()
    check_memory()
