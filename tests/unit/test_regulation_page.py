"""docs/regulation.md lists every check with its articles, what it reads, and when it cannot be judged."""

from pathlib import Path

from htfi.domain.orders import OrderEvent
from htfi.governance.regulation.catalogue import CHECKS
from htfi.governance.regulation.findings import RuleRegime
from htfi.governance.regulation.retention import RETENTION_CLASSES

PAGE = (Path(__file__).parents[2] / "docs/regulation.md").read_text(encoding="utf-8")


def test_every_check_has_its_line() -> None:
    for one in CHECKS:
        articles = " | ".join(one.articles.get(regime, "") for regime in RuleRegime)
        line = f"| `{one.id}` | {one.title} | {articles} | {one.reads} | {one.not_judged} |"
        assert line in PAGE, one.id
    assert len(CHECKS) > 35


def test_every_kind_of_event_and_every_retention_class_is_named() -> None:
    kinds = [one.__struct_config__.tag for one in OrderEvent.__args__]
    assert len(kinds) == 23
    assert [kind for kind in kinds if f"`{kind}`" not in PAGE] == []
    assert [one.name for one in RETENTION_CLASSES if f"| `{one.name}` |" not in PAGE] == []
