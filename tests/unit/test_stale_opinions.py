"""The fusion refuses an opinion that is stale, however sure it was."""

import numpy as np
import pytest

from htfi.forecasting.tilts import STALE_HALF_LIVES, Opinion, derive_tilts

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
PLAIN = np.array([[[-0.02, -0.008, 0.0, 0.008, 0.02]]])


def opinion(age: float, meant: tuple[tuple[int, float, float], ...] = ()) -> Opinion:
    return Opinion("target", 1.0, 2.0, 1.5, 0.95, age, 1.0, 0.0, meant)


@pytest.mark.parametrize("meant", [(), ((1, 0.8, 1.2),)])
def test_an_opinion_fades_and_is_refused_once_stale(meant: tuple[tuple[int, float, float], ...]) -> None:
    fresh, old, stale = (
        derive_tilts([opinion(age, meant)], PLAIN, (1,), LEVELS)
        for age in (0.0, STALE_HALF_LIVES, STALE_HALF_LIVES + 0.01)
    )
    assert bool(fresh.has_effect[0])
    assert 0.0 < old.shift[0, 0] < 0.2 * fresh.shift[0, 0]
    assert not stale.has_effect[0]
    assert stale.shift[0, 0] == 0.0
    assert stale.stretch[0, 0] == 1.0
