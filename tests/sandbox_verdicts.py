"""Verdicts as the sandbox records them, without trials: for tests of what follows from them."""

from pathlib import Path

from htfi.governance.sandbox.entries import SHIPPED, SandboxVerdict, encode_entry
from htfi.governance.sandbox.verdict import FailedCheck, SandboxCheck
from htfi.wiring.governance_log import open_governance_log
from htfi.wiring.sandbox.candidates import open_candidate

FAILED = FailedCheck(SandboxCheck.NOT_WORSE, "simulated crisis", "its loss is 1.2 of the champion’s")


def record_verdict(
    place: Path, governance: Path, *, passed: bool = True, champion: str = SHIPPED, proposed_by: str = ""
) -> SandboxVerdict:
    """A verdict on what lies at `place` as it is now, in the governance log."""
    candidate = open_candidate(place)
    verdict = SandboxVerdict(
        at_ns=1, candidate=candidate.name, candidate_kind=candidate.kind, digest=candidate.digest,
        lineage=candidate.lineage, champion_digest=champion, history_digest="", trials=(), results=(),
        failed=() if passed else (FAILED,), num_tries=1, permitted_chance=0.03, gain_sharpe=None, gain_is_real=None,
        not_enforced=(), untried=(), proposed_by=proposed_by,
    )  # fmt: skip
    log = open_governance_log(governance)
    try:
        log.append([encode_entry(verdict)])
    finally:
        log.close()
    return verdict


def settings_file(place: Path, decay: float) -> Path:
    """Settings that can be promoted."""
    place.write_text(f"[forecasting]\newma_decay = {decay}\n")
    return place
