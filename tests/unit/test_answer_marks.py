"""The words of an answer: the control tokens in the order of their ids, and the confidence of a calibration."""

import pytest

from htfi.domain.errors import InvalidInput
from htfi.narrative.answer import (
    CONFIDENCES,
    MARKS,
    MAX_ITEMS,
    ConfidenceCalibration,
)


def test_items_are_numbered_from_one_and_a_mark_stands_once():
    items = [mark for mark in MARKS if mark[0] == "h" and mark[1:].isdigit()]
    assert items == [f"h{place}" for place in range(1, MAX_ITEMS + 1)]
    assert len(MARKS) == len(set(MARKS))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.1])
@pytest.mark.parametrize("kind", ["flat", "moving"])
def test_a_share_of_a_calibration_lies_between_0_and_1(kind: str, share: float):
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        ConfidenceCalibration(**{kind: (*CONFIDENCES[:-1], share)})


@pytest.mark.parametrize("kind", ["flat", "moving"])
def test_a_calibration_has_a_share_for_each_step(kind: str):
    with pytest.raises(InvalidInput, match=f"{len(CONFIDENCES)} shares"):
        ConfidenceCalibration(**{kind: CONFIDENCES[:-1]})
