"""An edge and clouds with desks of their own in the memory world, in virtual time: every pass takes its time there."""

from collections.abc import Callable, Sequence
from itertools import zip_longest

from htfi.decoding.config import DecodingConfig, EdgeConfig, VerificationServerConfig
from htfi.decoding.engine import DecodingEngine
from htfi.decoding.link.client.generator import ExpectedTarget, LinkedGenerator
from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.server.remote_drafts import RoutedStrategy
from htfi.decoding.link.server.server import VerificationServer
from htfi.decoding.link.simulated.faults import NO_FAULTS, FrameFaults
from htfi.decoding.link.simulated.network import SimulatedNetwork
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.scheduling.turns.fair_share import FairScheduler
from linked_world import TOKENIZER, VOCAB, Blend, Plan, draft_author
from tiny_network import TinyNetwork

CONFIG = DecodingConfig(batch_bytes=2**22)
PASS_S = 0.004


class TimedNetwork(TinyNetwork):
    """A pass takes virtual time."""

    def __init__(self, spend: Callable[[float], None], seed: int = 0) -> None:
        super().__init__(VOCAB, seed)
        self._spend = spend

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        self._spend(PASS_S)
        return super().forward(ids, positions, mask, keys, values)


class DeskNode:
    """A cloud in the world: its desk, and the step that drives it."""

    def __init__(
        self,
        world: SimulatedNetwork,
        name: str,
        has_draft: bool,
        life: int = 1,
        target_seed: int = 0,
        full_seed: int | None = None,
    ) -> None:
        """`full_seed` is of the network that stands for the target in full precision, where there is one."""
        self.world, self.name = world, name
        network = TimedNetwork(world.consume_time, target_seed)
        digest = TinyNetwork(VOCAB).digest  # what it claims to be
        routed = RoutedStrategy(
            ChainStrategy(KVSessions(Blend(0.2), CONFIG)) if has_draft else None, world.clock
        )
        rounds = DecodingEngine(
            network, TOKENIZER, "tiny", CONFIG, digest=digest, strategy=routed, clock=world.clock
        )

        def full() -> tuple[DecodingEngine, RoutedStrategy, FairScheduler]:
            alone, other = RoutedStrategy(None, world.clock), TimedNetwork(world.consume_time, full_seed or 0)
            rounds = DecodingEngine(
                other, TOKENIZER, "full", CONFIG, digest=digest, strategy=alone, clock=world.clock
            )
            return rounds, alone, FairScheduler()

        self.desk = VerificationServer(
            rounds, routed, FairScheduler(), world.clock, VerificationServerConfig(node=name), life,
            None if full_seed is None else full,
        )  # fmt: skip
        self._transport = world.node(name)
        world.attach(name, self.step)

    def step(self) -> float | None:
        while (arrival := self._transport.receive(0.0)) is not None:
            self.desk.receive(arrival)
        is_busy = self.desk.step()
        for stream, sealed in self.desk.outgoing():
            if not self._transport.send(stream, sealed):
                self.desk.unsent(stream, sealed)
        for stream, words in self.desk.drops():
            self._transport.drop(stream, words)
        if is_busy:
            return 0.0
        wait_s = self.desk.next_s()
        return None if wait_s is None else max(wait_s, 1e-4)  # sums of virtual seconds are not exact


class Cluster:
    """One edge and some clouds. `usable` are those that health would name."""

    def __init__(
        self,
        seed: int = 0,
        weather: FrameFaults = NO_FAULTS,
        lead: DraftMode = DraftMode.PIPELINED,
        num_clouds: int = 1,
        config: EdgeConfig | None = None,
        has_draft: bool = True,
        draft: LocalGenerator | None = None,
        full_seeds: Sequence[int | None] = (),
    ) -> None:
        self.world = SimulatedNetwork(seed, weather)
        names = [f"cloud{at + 1}" for at in range(num_clouds)]
        self.clouds = {
            name: DeskNode(self.world, name, has_draft, full_seed=seed)
            for name, seed in zip_longest(names, full_seeds)
        }
        self.transport = self.world.node("edge1")
        for name in names:
            self.world.connect("edge1", name)
        self.plan = Plan(lead)
        self.usable = list(names)
        self.reports: list[tuple[str, str, str]] = []
        self.draft = draft or draft_author()
        self.author = LinkedGenerator(
            self.draft,
            ExpectedTarget("tiny@1", TinyNetwork(VOCAB).digest),
            "edge1",
            self.transport,
            self.plan,
            lambda: self.usable,
            self.world.clock,
            lambda *line: self.reports.append(line),
            config,
        )

    def restart(self, name: str, life: int) -> None:
        self.world.kill(name)
        self.clouds[name] = DeskNode(self.world, name, has_draft=True, life=life)

    def late(self, seconds: float) -> dict[str, object]:
        """What comes late within a time."""
        found: dict[str, object] = {}
        until_s = self.world.now_s + seconds
        while self.world.now_s < until_s:
            found.update(self.author.take_late_completions())
            self.world.advance(self.world.now_s + 0.02)
        return found
