"""A cloud's desk on the shipped pair: with many in flight, in every mode, each answer is the embedded author's."""

import time

import numpy as np
import pytest

from desk_world import Edge, run
from htfi import models
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.link.desk import Desk
from htfi.decoding.link.desk_config import DeskConfig
from htfi.decoding.link.frames import Lead
from htfi.decoding.link.posted import Routed
from htfi.decoding.lookahead.closed_form import ClosedForm
from htfi.decoding.rounds import Rounds
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.domain.writing import Choice, Form, Mark, Request, Sigmas, Text, Words, Writing
from htfi.scheduling.turns.fair import FairTurns

pytest.importorskip("onnxruntime")
from htfi.wiring.open_folder import load_network, open_folder

CONFIG = DecodingConfig(max_batch=12)


def asked(num: int) -> list[Request]:
    dice = np.random.Generator(np.random.PCG64(3))
    path: Form = tuple(
        Choice(f"s{step}", tuple((Sigmas((x / 4,)),) for x in range(-8, 9))) for step in range(16)
    )
    words: Form = (Words("words", 16, Mark("/s")),)
    shared = Sigmas(tuple(dice.standard_normal(40).tolist()))
    return [
        Request(
            (Mark("s"), shared, Mark("news"), Text(f"Profits rose {'again ' * (seed % 5)}"), Mark("/news")),
            words if seed % 2 else path,
            seed,
            1.0,
            kind="words" if seed % 2 else "path",
        )
        for seed in range(num)
    ]


def test_twenty_requests_of_four_edges_are_answered_to_the_bit():
    target, draft = (open_folder(path, "int8") for path in (models.TARGET, models.DRAFT))
    network = load_network(target.folder, "int8")
    local = LocalAuthor(network, target.tokenizer, "target", CONFIG)
    requests = asked(20)
    truth = local.write(requests)
    routed = Routed(Chain(Sessions(load_network(draft.folder, "int8"), CONFIG)))
    rounds = Rounds(network, target.tokenizer, "target", CONFIG, strategy=routed, lookahead=ClosedForm())
    cloud = Desk(rounds, routed, FairTurns(), time.monotonic, DeskConfig(window_ms=5.0))
    edges = [Edge(cloud, f"s{i}", f"edge{i}", vocabulary=rounds.vocabulary) for i in range(4)]
    for handle, (request, writing) in enumerate(zip(requests, truth, strict=True)):
        assert isinstance(writing, Writing)
        edge, text = edges[handle % 4], list(writing.tokens)
        edge.say(edge.opening(request, handle, list(Lead)[handle // 4 % 4]))
        guessed = [*text[: handle % 9], *text[:5], *text[handle % 9 + 5 :]][: len(text)]
        edge.say(*(edge.window(handle, at, guessed, 4) for at in range(0, len(guessed), 4)))
    while not cloud.is_idle:
        run(cloud, *edges)
        time.sleep(0.001)
    for handle, writing in enumerate(truth):
        assert isinstance(writing, Writing)
        assert tuple(edges[handle % 4].done[handle]) == writing.tokens
    assert not any(edge.refused() for edge in edges)
    assert cloud.engine.measured.acceptance("path") < 0.999
    assert cloud.vitals.pace.cell_ms > 0.0
