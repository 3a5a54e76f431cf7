"""Nodes that agree on changes over a network that loses, repeats, reorders and cuts, and that are killed at any act."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.governance.bundles.adoption import (
    AdoptionAction,
    AdoptionRecord,
    AdoptionState,
    AdoptionTime,
    ApplyChange,
    RefuseActivation,
    SaveRecord,
    SendAdoption,
    receive,
    request_activation,
    start_adoption,
    tick,
)
from htfi.governance.bundles.messages import decode_adoption, encode_adoption

NODES = ("a", "b", "c", "d", "e")


def follows(chosen: Sequence[str], note: str, now_ns: int | None) -> str:
    """A change 'N:words' must have the next number: of those for one number only one can be activated."""
    del now_ns
    return (
        "" if int(note.split(":")[0]) == len(chosen) + 1 else f"{note} does not follow {len(chosen)} changes"
    )


@dataclass
class BundleNetwork:
    """`saved` and `applied` are what lies on each node's disk; a node that is down has no state."""

    rng: random.Random
    loss: float = 0.2
    now_s: float = 0.0
    saved: dict[str, AdoptionRecord] = field(default_factory=dict[str, AdoptionRecord])
    applied: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    states: dict[str, AdoptionState] = field(default_factory=dict[str, AdoptionState])
    under_way: list[tuple[str, str, bytes]] = field(default_factory=list[tuple[str, str, bytes]])
    side: dict[str, int] = field(default_factory=dict[str, int])
    refused: list[str] = field(default_factory=list[str])
    kill_at: int = -1  # how many acts until the node that acts is killed
    nodes: tuple[str, ...] = NODES

    def __post_init__(self) -> None:
        for node in self.nodes:
            self.saved[node], self.applied[node] = AdoptionRecord(), []
            self.side[node] = 0
            self.start(node)

    @property
    def time(self) -> AdoptionTime:
        return AdoptionTime(self.now_s, int(self.now_s * 1e9))

    def start(self, node: str) -> None:
        state, actions = start_adoption(node, self.nodes, self.saved[node])
        self._do(node, state, actions)

    def kill(self, node: str) -> None:
        self.states.pop(node, None)

    def ask(self, node: str, note: str) -> None:
        if node in self.states:
            self._do(node, *request_activation(self.states[node], note, self.time, follows))

    def tick(self, node: str) -> None:
        if node in self.states:
            self._do(node, *tick(self.states[node], self.time, follows))

    def deliver(self) -> None:
        """One message that is under way, any; it may stay, and come again."""
        if not self.under_way:
            return
        index = self.rng.randrange(len(self.under_way))
        sender, to, body = self.under_way[index]
        if self.rng.random() < 0.85:
            self.under_way.pop(index)
        if self.rng.random() < self.loss or self.side[sender] != self.side[to] or to not in self.states:
            return
        message = decode_adoption(body)
        self._do(to, *receive(self.states[to], sender, message, self.time, follows))

    def settle(self) -> None:
        """Everything works again: rounds until all is quiet."""
        self.loss, self.kill_at = 0.0, -1
        self.side = dict.fromkeys(self.nodes, 0)
        for node in self.nodes:
            if node not in self.states:
                self.start(node)
        for _ in range(80):
            self.now_s += 0.1
            for node in self.nodes:
                self.tick(node)
            for _ in range(400):
                self.deliver()

    def _do(self, node: str, state: AdoptionState, actions: Sequence[AdoptionAction]) -> None:
        self.states[node] = state
        for action in actions:
            if self.kill_at == 0:
                self.kill_at = -1
                self.kill(node)
                return
            self.kill_at -= self.kill_at > 0
            match action:
                case SaveRecord():
                    self.saved[node] = action.record
                case ApplyChange():
                    if action.note not in self.applied[node]:
                        self.applied[node].append(action.note)
                case SendAdoption():
                    self.under_way.append((node, action.to, encode_adoption(action.message)))
                case RefuseActivation():
                    self.refused.append(action.why)
