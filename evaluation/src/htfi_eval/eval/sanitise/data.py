"""Data of `htfi eval sanitise`: agency headlines, posts and speeches, staged attacks; never stored."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from htfi.domain.events import News
from htfi.domain.time import NS_PER_MS
from htfi_eval.eval.prices import read_rows

DEFAULT_FOLDER = Path("../shared/data")
REUTERS = "text_price/reuters_news_2006_2013.parquet"
_INJECTIONS = "adversarial/prompt_injection_labelled.parquet"
_PUMPS = "adversarial/pump_telegram_messages.parquet"
_OTHERS = (
    ("StockNet tweets", "text_price/stocknet_tweets.parquet", "text"),
    ("StockTwits posts", "text_price/stockemotions_posts.parquet", "text"),
    ("FOMC statements", "central_bank/fomc_communications_1994_2024.parquet", "text"),
    ("Fed speeches", "central_bank/fed_speeches_1996_2022.parquet", "policy_sentences"),
    ("headlines and press releases", "sentiment/financial_sentiment.parquet", "text"),
    ("Chinese company news", "text_price/astock_cn_news_val_test.parquet", "text"),
)
_NUM_OTHERS = 2_000


@dataclass(frozen=True, slots=True)
class AttackData:
    """`held`: injections that were not looked at; `seen`: those whose misses were used to write rules."""

    honest: list[News]
    others: dict[str, list[str]]
    injections: dict[str, list[str]]
    seen_injections: list[str]
    harmless: list[str]  # requests to chatbots, in the same set
    pumps: list[str]
    other_posts: list[str]  # of the same channels, which the classifier did not label as pumps


def load(folder: Path | None, num_honest: int | None) -> AttackData:
    """Raises: MissingExtra, DependencyUnavailable."""
    folder = folder or DEFAULT_FOLDER
    rows = _read(folder / _INJECTIONS, ["text", "label", "kind"])
    injections: dict[str, list[str]] = {}
    seen: list[str] = []
    harmless: list[str] = []
    for text, label, kind in zip(rows["text"], rows["label"], rows["kind"], strict=True):
        if is_seen(text):
            if label:
                seen.append(text)
        elif label:
            injections.setdefault(str(kind), []).append(text)
        else:
            harmless.append(text)
    pumps = _read(folder / _PUMPS, ["text", "pump_silver"])
    unseen = [
        (text, silver) for text, silver in zip(pumps["text"], pumps["pump_silver"], strict=True) if not is_seen(text)
    ]  # fmt: skip
    others: dict[str, list[str]] = {}
    for name, file, column in _OTHERS:
        texts = sorted({text for text in _read(folder / file, [column])[column] if text}, key=_digest)
        others[name] = texts[:_NUM_OTHERS]
    return AttackData(
        _honest(folder / REUTERS, num_honest),
        others,
        dict(sorted(injections.items())),
        seen,
        harmless,
        [text for text, silver in unseen if silver],
        [text for text, silver in unseen if not silver],
    )


def is_seen(text: str) -> bool:
    """Whether a text is in the half whose misses may be looked at."""
    return _digest(text)[0] % 2 == 0


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def _honest(file: Path, num: int | None) -> list[News]:
    """Agency items in order of time; every n-th where fewer are asked for."""
    rows = _read(file, ["headline", "lead", "symbols"])
    published = read_rows(file)["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    published_ns: list[int] = published.tolist()
    step = max(1, len(rows["headline"]) // num) if num else 1
    found: list[News] = []
    for row in range(0, len(rows["headline"]), step):
        at_ns = published_ns[row]
        found.append(
            News(
                available_at_ns=at_ns,
                event_time_ns=at_ns,
                source="headlines",
                row=row,
                id=f"honest/{row}",
                headline=rows["headline"][row] or "",
                body=rows["lead"][row] or "",
                symbols=tuple((rows["symbols"][row] or "").split())[:8],
            )
        )
    return sorted(found, key=lambda item: (item.available_at_ns, item.row))


def _read(file: Path, columns: list[str]) -> dict[str, list[Any]]:
    rows = read_rows(file)
    return {column: rows[column].tolist() for column in columns}
