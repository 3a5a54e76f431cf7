"""A bundle that has a breaker act where it cannot is refused by name: else it would be switched off unseen."""

from pathlib import Path

import pytest

from htfi.adapters.keys.ed25519 import create_key
from htfi.domain.errors import InvalidInput
from htfi.governance.breakers.config import MEANINGS, BreakerConfig, BreakerLimits, unusable_scopes
from htfi.governance.breakers.panel import BAR_TESTS
from htfi.wiring import bundles


def test_the_shipped_breakers_act_where_they_are_to() -> None:
    assert unusable_scopes(BreakerConfig()) == []
    at_all = BreakerConfig(**{name: BreakerLimits(("series", "desk", "firm")) for name, _ in BAR_TESTS})
    assert unusable_scopes(at_all) == []


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_each_breaker_refuses_the_levels_it_cannot_act_at(name: str) -> None:
    everywhere = BreakerLimits(("series", "desk", "model", "firm"))
    (found,) = unusable_scopes(BreakerConfig(**{name: everywhere}))
    assert found.startswith(f"breakers.{name}.scopes: it cannot act at ")


def test_a_draft_and_an_activation_with_such_a_scope_are_one_line(tmp_path: Path) -> None:
    folder, key, file = tmp_path / "G", tmp_path / "ann.key", tmp_path / "b.toml"
    bundles.init_folder(folder, 1, [("ann", str(create_key(key, "ann").verifier_key))])
    expected = "bundle 1: breakers.frozen_feed.scopes: it cannot act at model, only at series, desk, firm"
    with pytest.raises(InvalidInput, match=expected):
        bundles.draft_bundle(folder, "ann", ['breakers.frozen_feed.scopes=["model"]'])
    draft = bundles.draft_bundle(folder, "ann", ['breakers.frozen_feed.scopes=["firm"]'])
    bundles.write_draft(file, draft)
    text = file.read_text()
    table = text.index("[breakers.frozen_feed]")
    file.write_text(text[:table] + text[table:].replace('["firm"]', '["model"]', 1))
    bundles.sign_bundle(file, key)
    for refused in (bundles.propose_bundle, bundles.activate_bundle):
        with pytest.raises(InvalidInput, match=expected):
            refused(folder, file)
