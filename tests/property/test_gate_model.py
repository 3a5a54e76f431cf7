"""The gate beside a plain model of its rules, which reads all events anew: every check of every random intent alike."""

import pytest

from htfi.execution.gate.judging import GateCheck
from htfi_eval.bench.execution.gate import compare


@pytest.mark.parametrize("num", [2_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_gate_and_model_name_the_same_checks(num: int) -> None:
    found = compare(num, seed=11)
    differing = found.num_escaped, found.num_refused_alone, found.num_other_reasons
    assert differing == (0, 0, 0), found.example
    assert found.num_passed > num / 20
    assert {one.value for one in GateCheck} == set(found.by_check)
