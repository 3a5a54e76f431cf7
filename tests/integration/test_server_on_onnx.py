"""A cloud's desk on the shipped pair: with many in flight, in every mode, each answer is the embedded author's."""

import time

import numpy as np
import pytest

from htfi import models
from htfi.decoding.config import DecodingConfig, VerificationServerConfig
from htfi.decoding.draft_length.closed_form import ThroughputPlanner
from htfi.decoding.engine import DecodingEngine
from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.server.remote_drafts import RoutedStrategy
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    ScaledMoves,
)
from htfi.scheduling.turns.fair_share import FairScheduler
from server_world import Edge, run

pytest.importorskip("onnxruntime")
from htfi.wiring.models.loading import load_network, open_model

CONFIG = DecodingConfig(max_batch=12)


def asked(num: int) -> list[GenerationRequest]:
    dice = np.random.Generator(np.random.PCG64(3))
    path: OutputGrammar = tuple(
        ChoiceField(f"s{step}", tuple((ScaledMoves((x / 4,)),) for x in range(-8, 9))) for step in range(16)
    )
    words: OutputGrammar = (FreeTextField("words", 16, ControlToken("/s")),)
    shared = ScaledMoves(tuple(dice.standard_normal(40).tolist()))
    return [
        GenerationRequest(
            (
                ControlToken("s"),
                shared,
                ControlToken("news"),
                PlainText(f"Profits rose {'again ' * (seed % 5)}"),
                ControlToken("/news"),
            ),
            words if seed % 2 else path,
            seed,
            1.0,
            kind="words" if seed % 2 else "path",
        )
        for seed in range(num)
    ]


def test_twenty_requests_of_four_edges_are_answered_to_the_bit():
    target, draft = (open_model(path, "int8") for path in (models.TARGET, models.DRAFT))
    network = load_network(target.folder, "int8")
    local = LocalGenerator(network, target.tokenizer, "target", CONFIG)
    requests = asked(20)
    truth = local.write(requests)
    routed = RoutedStrategy(ChainStrategy(KVSessions(load_network(draft.folder, "int8"), CONFIG)))
    rounds = DecodingEngine(
        network, target.tokenizer, "target", CONFIG, strategy=routed, length_planner=ThroughputPlanner()
    )
    cloud = VerificationServer(
        rounds, routed, FairScheduler(), time.monotonic, VerificationServerConfig(window_ms=5.0)
    )
    edges = [Edge(cloud, f"s{i}", f"edge{i}", vocabulary=rounds.vocabulary) for i in range(4)]
    for handle, (request, writing) in enumerate(zip(requests, truth, strict=True)):
        assert isinstance(writing, Completion)
        edge, text = edges[handle % 4], list(writing.tokens)
        edge.say(edge.opening(request, handle, list(DraftMode)[handle // 4 % 4]))
        guessed = [*text[: handle % 9], *text[:5], *text[handle % 9 + 5 :]][: len(text)]
        edge.say(*(edge.window(handle, at, guessed, 4) for at in range(0, len(guessed), 4)))
    while not cloud.is_idle:
        run(cloud, *edges)
        time.sleep(0.001)
    for handle, writing in enumerate(truth):
        assert isinstance(writing, Completion)
        assert tuple(edges[handle % 4].done[handle]) == writing.tokens
    assert not any(edge.refused() for edge in edges)
    assert cloud.scheduler.measured.acceptance("path") < 0.999
    assert cloud.metrics.pace.cell_ms > 0.0
