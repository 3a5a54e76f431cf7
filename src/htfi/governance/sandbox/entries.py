"""What the governance log holds of candidates: verdicts, promotions, roll-backs; and what follows from them. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from htfi.governance.sandbox.results import TrialResult
from htfi.governance.sandbox.trials import CandidateKind, SandboxTrial
from htfi.governance.sandbox.verdict import FailedCheck

SHIPPED = "shipped"


class SandboxVerdict(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sandbox_verdict"):
    """What trials found of a candidate. It passed where `failed` is empty.

    `num_tries` counts the tries of this lineage up to this one since its last promotion. `gain_sharpe` is the gain by
    date over its deviation; `gain_is_real` the chance that it is more than the luck of so many tries.
    """

    at_ns: int
    candidate: str  # its file's or folder's name
    candidate_kind: CandidateKind
    digest: str
    lineage: str
    champion_digest: str
    history_digest: str
    trials: tuple[SandboxTrial, ...]
    results: tuple[TrialResult, ...]
    failed: tuple[FailedCheck, ...]
    num_tries: int
    permitted_chance: float
    gain_sharpe: float | None
    gain_is_real: float | None
    not_enforced: tuple[str, ...]
    untried: tuple[str, ...]
    proposed_by: str = ""  # who had it tried; empty where nobody was named

    @property
    def passed(self) -> bool:
        return not self.failed


class ModelPromoted(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="model_promoted"):
    """From now on the candidate with this digest serves in its lineage. `verdict` is the place of its verdict."""

    at_ns: int
    lineage: str
    digest: str
    place: str  # where it lies
    verdict: int
    by: str
    why: str
    signed: str = ""  # the signed note, where the governance folder has people


class ModelRolledBack(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="model_rolled_back"):
    """The newest promotion of a lineage is taken back: `to` serves again, a digest or 'shipped'."""

    at_ns: int
    lineage: str
    digest: str
    to: str
    by: str
    why: str
    signed: str = ""  # as of a promotion


CandidateEntry = SandboxVerdict | ModelPromoted | ModelRolledBack
KINDS = frozenset({"sandbox_verdict", "model_promoted", "model_rolled_back"})


class _AnyEntry(msgspec.Struct):
    kind: str


def encode_entry(entry: CandidateEntry) -> bytes:
    """Canonical JSON, fields in declared order; numbers that are none become null."""
    return msgspec.json.encode(entry)


_decode_kind = msgspec.json.Decoder(_AnyEntry).decode
_decode_entry = msgspec.json.Decoder(CandidateEntry).decode


def candidate_entries(entries: Iterable[bytes]) -> list[tuple[int, CandidateEntry]]:
    """Those of a governance log that are about candidates, with their places. Raises: msgspec.DecodeError."""
    return [
        (place, _decode_entry(data)) for place, data in enumerate(entries) if _decode_kind(data).kind in KINDS
    ]


@dataclass(frozen=True, slots=True)
class CandidateLog:
    """What a governance log says of candidates."""

    entries: tuple[tuple[int, CandidateEntry], ...]

    def num_tries(self, digest: str, lineage: str) -> int:
        """How often this candidate or one of its lineage was tried since the lineage was last promoted."""
        return len(self._since_promotion(digest, lineage))

    def sharpes(self, digest: str, lineage: str) -> list[float]:
        """The gains of those tries."""
        found = (one.gain_sharpe for one in self._since_promotion(digest, lineage))
        return [one for one in found if one is not None and math.isfinite(one)]

    def proposer(self, digest: str) -> str:
        """Who had this digest tried first; empty where nobody was named."""
        return next(
            (
                entry.proposed_by
                for _, entry in self.entries
                if isinstance(entry, SandboxVerdict) and entry.digest == digest and entry.proposed_by
            ),
            "",
        )

    def newest_verdict(self, digest: str) -> tuple[int, SandboxVerdict] | None:
        """The newest verdict on exactly this digest, and its place."""
        found = [
            (place, one)
            for place, one in self.entries
            if isinstance(one, SandboxVerdict) and one.digest == digest
        ]
        return found[-1] if found else None

    def promoted(self) -> dict[str, list[ModelPromoted]]:
        """By lineage the promotions that stand, the newest last: it serves."""
        stacks: dict[str, list[ModelPromoted]] = {}
        for _, one in self.entries:
            if isinstance(one, ModelPromoted):
                stacks.setdefault(one.lineage, []).append(one)
            elif isinstance(one, ModelRolledBack) and stacks.get(one.lineage):
                stacks[one.lineage].pop()
        return stacks

    def _since_promotion(self, digest: str, lineage: str) -> list[SandboxVerdict]:
        found: list[SandboxVerdict] = []
        for _, one in self.entries:
            if isinstance(one, ModelPromoted) and one.lineage == lineage:
                found.clear()
            if isinstance(one, SandboxVerdict) and (one.lineage == lineage or one.digest == digest):
                found.append(one)
        return found
