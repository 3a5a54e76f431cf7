"""A pair of models over a simulated link: the draft at an edge, the target in two clouds, all in this process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from htfi.decoding.acceptance import AcceptanceAlarm
from htfi.decoding.engine import DecodingEngine
from htfi.decoding.link.client.generator import ExpectedTarget, LinkedGenerator
from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.ports import PlacementQuery, PlacementResult, PlannedPlacement
from htfi.decoding.link.server.remote_drafts import RoutedStrategy
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.link.simulated.measured import MeasuredNetwork
from htfi.decoding.link.simulated.network import SimulatedNetwork
from htfi.decoding.local_generator import LocalGenerator
from htfi.governance.sandbox.trials import SandboxTrial
from htfi.pipeline.sandbox.link_trial import run_link_trial
from htfi.pipeline.sandbox.messages import LinkReading
from htfi.scheduling.turns.fair_share import FairScheduler
from htfi.wiring.models.loading import LoadableModel
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.models.speculation import require_shared_noise
from htfi.wiring.settings import Settings

_EDGE, _CLOUDS = "edge1", ("cloud1", "cloud2")
_BATCH_BYTES, _CACHE_BYTES = 128 << 20, 32 << 20  # of each of four engines: one reading at a time
_WINDOW, _IN_FLIGHT, _EXPECTED_MS, _HEDGE_AFTER_MS = 6, 4, 200.0, 400.0


class AheadPlacer:
    """Implements `RequestPlacer`: the edge always drafts ahead, for the first cloud that there is."""

    def place(self, wanted: PlacementQuery, clouds: Sequence[str]) -> PlannedPlacement:
        del wanted
        return PlannedPlacement(
            clouds[0] if clouds else "", DraftMode.PIPELINED, _WINDOW, _IN_FLIGHT, _EXPECTED_MS, _HEDGE_AFTER_MS,
            "a trial over a simulated link",
        )  # fmt: skip

    def learn(self, finished: PlacementResult) -> None:
        """It learns nothing: each trial is placed alike."""


@dataclass(slots=True)
class SimulatedPair:
    """A target and a draft that are loaded; `run` puts them over a link."""

    settings: Settings
    target: LoadableModel
    draft: LoadableModel

    def run(self, trial: SandboxTrial) -> list[LinkReading]:
        """One trial, on a new link. Raises: InvalidInput, DependencyUnavailable."""
        network = SimulatedNetwork(trial.seed)
        for name in _CLOUDS:
            self._start_cloud(network, name)
        transport = network.node(_EDGE)
        for name in _CLOUDS:
            network.connect(_EDGE, name)
        edge = LinkedGenerator(
            self._draft(network),
            ExpectedTarget(self.target.version, self.target.folder.digest),
            _EDGE,
            transport,
            AheadPlacer(),
            lambda: _CLOUDS,
            network.clock,
            _report_nothing,
            self.settings.edge,
            AcceptanceAlarm(),
        )
        return run_link_trial(trial, network, edge, self.target.plain_generator(self.settings.decoding))

    def _draft(self, network: SimulatedNetwork) -> LocalGenerator:
        measured = MeasuredNetwork(self.draft.draft_network, network.consume_time)
        return self.draft.generator(measured, self.settings.decoding)

    def _start_cloud(self, network: SimulatedNetwork, name: str) -> None:
        target, tokenizer = self.target, self.target.tokenizer
        routed = RoutedStrategy(None, network.clock)
        rounds = DecodingEngine(
            MeasuredNetwork(target.network, network.consume_time),
            tokenizer,
            target.name,
            self.settings.decoding,
            tokenizer.opening,
            target.folder.digest,
            routed,
            clock=network.clock,
        )
        config = replace(self.settings.server, node=name)
        server = VerificationServer(
            rounds, routed, FairScheduler(self.settings.turns), network.clock, config, 1
        )
        transport = network.node(name)

        def step() -> float | None:
            while (arrival := transport.receive(0.0)) is not None:
                server.receive(arrival)
            is_busy = server.step()
            for stream, sealed in server.outgoing():
                if not transport.send(stream, sealed):
                    server.unsent(stream, sealed)
            for stream, reason in server.drops():
                transport.drop(stream, reason)
            if is_busy:
                return 0.0
            wait_s = server.next_s()
            return None if wait_s is None else max(wait_s, 1e-4)  # sums of virtual seconds are not exact

        network.attach(name, step)


def _report_nothing(peer: str, event: str, detail: str) -> None:
    del peer, event, detail


def open_simulated_pair(settings: Settings) -> SimulatedPair:
    """Load the pair that the settings name. Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    decoding = settings.decoding
    require_shared_noise(decoding, "a link between edge and cloud")
    target, draft = open_model_pair(settings.models)
    decoding = replace(
        decoding,
        batch_bytes=min(decoding.batch_bytes, _BATCH_BYTES),
        cache_bytes=min(decoding.cache_bytes, _CACHE_BYTES),
    )
    return SimulatedPair(replace(settings, decoding=decoding), target, draft)
