"""The count of official documents that are held back."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from htfi_eval.eval.reading.official import OFFICIAL_FEED, UNKNOWN_FEED, evaluate_official

PUMP = "$XYZQ is going to the moon, buy now before it is too late, 1000% guaranteed 🚀"


def write_archive(folder: Path, texts: list[str]) -> None:
    (folder / "central_bank").mkdir()
    days = [date(2024, 1, 31)] * len(texts)
    communications = {"type": ["statement"] * len(texts), "text": texts, "release_date": days}
    pq.write_table(pa.table(communications), folder / "central_bank/fomc_communications_1994_2024.parquet")
    speech = {
        "speaker": ["Governor A"],
        "title": ["The outlook"],
        "policy_sentences": [None],
        "date": [date(2020, 1, 2)],
    }
    table = pa.table(
        speech,
        schema=pa.schema(
            [
                ("speaker", pa.string()),
                ("title", pa.string()),
                ("policy_sentences", pa.string()),
                ("date", pa.date32()),
            ]
        ),
    )
    pq.write_table(table, folder / "central_bank/fed_speeches_1996_2022.parquet")


def test_missing_archive_gives_nothing(tmp_path: Path):
    assert evaluate_official(tmp_path) is None


def test_every_form_from_both_feeds_is_screened_and_counted(tmp_path: Path):
    write_archive(tmp_path, ["The Committee decided to keep its target at 5 percent.", PUMP])
    found = evaluate_official(tmp_path)
    assert found is not None
    assert (found.num_documents, found.num_screened) == (3, 2 * (3 + 3 + 1))
    assert (found.num_held(OFFICIAL_FEED), found.num_held(UNKNOWN_FEED)) == (0, 2)
    assert found.held_share == 2 / 14
    assert {one.form for one in found.held} == {"body only", "both"}
    assert all("pump" in one.rules for one in found.held)
