"""The public names are those that are listed, and what would break a program is found and must be announced."""

import pytest

import htfi
from public_names import CHANGELOG, LISTING, breaks, listing, unannounced

BEFORE = LISTING.read_text(encoding="utf-8")


def test_no_public_name_or_command_changed_without_its_announcement():
    now = listing()
    assert unannounced(breaks(BEFORE, now), CHANGELOG.read_text(encoding="utf-8")) == []
    assert now == BEFORE, "docs/api.txt is out of date: run `make api`"


def test_every_public_name_is_listed():
    listed = {
        line.split("(")[0].split()[1].strip(":")
        for line in BEFORE.splitlines()
        if line[:4] in ("def ", "clas")
    }
    assert listed == set(htfi.__all__)


@pytest.mark.parametrize(
    ("old", "new", "name", "words"),
    [
        ("def read(", "def understand(", "htfi.read", "removed"),
        ("symbol: str | None = None, horizons", "horizons", "htfi.forecast", "Parameter was removed"),
        ("progress: bool = False", "progress: bool", "htfi.backtest", "required"),
        ("progress: bool = False", "progress: bool = True", "htfi.backtest", "default"),
        ("n: int = 1000", "*, n: int = 1000", "htfi.ForecastResult.sample", "kind"),
        ("    num_passes: int\n", "", "htfi.Generation.num_passes", "removed"),
        ("    def __len__() -> int: ...\n", "", "htfi.Backtest.__len__", "removed"),
        (" --recompute", "", "htfi ledger verify", "without --recompute"),
        ("# htfi certs ", "# htfi keys ", "htfi certs make", "command was removed"),
    ],
)
def test_a_break_is_found_and_named(old, new, name, words):
    assert old in BEFORE
    found = breaks(BEFORE, BEFORE.replace(old, new))
    assert words in found[name]
    (line,) = [
        line
        for line in unannounced(found, "# C\n\n## [Unreleased]\n\n### Added\n")
        if line.startswith(f"{name}:")
    ]
    assert "Changed or Removed, and run `make api`" in line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("progress: bool = False", "progress: bool = False, another: int = 0"),
        ("    num_passes: int\n", "    num_passes: int\n    another: int\n"),
        (" --recompute", " --recompute --another"),
    ],
)
def test_what_is_added_breaks_nothing(old, new):
    assert old in BEFORE
    assert breaks(BEFORE, BEFORE.replace(old, new)) == {}


def test_an_announced_break_passes_and_one_of_an_earlier_release_does_not():
    found = {"htfi.read": "Public object was removed"}
    said = "### Removed\n- `htfi.read`: use `htfi.understand`.\n"
    assert unannounced(found, f"# C\n\n## [Unreleased]\n\n{said}\n## [0.1.0]\n") == []
    assert (
        len(unannounced(found, f"# C\n\n## [Unreleased]\n\n### Added\n- `htfi.read`\n\n## [0.1.0]\n\n{said}"))
        == 1
    )
