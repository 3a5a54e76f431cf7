"""Makes the files that a run derives from its ledger at its end. `htfi run` and the library's runs ask for them."""

from pathlib import Path

from htfi.pipeline.record.decoded_once import Decode, decode_each
from htfi.wiring.outputs import JOURNAL, OutputFile, write_parquet
from htfi.wiring.run import OpenRun
from htfi.wiring.statement_file import write_statements


def write_derived_files(run: OpenRun, folder: Path, decode: Decode = decode_each) -> list[Path]:
    """Make the table, where it is wanted, and the documents of central banks; the files worth naming."""
    written = [folder / JOURNAL] if OutputFile.LINES in run.outputs else []
    write_statements(folder, run.loop.components.news.compared_documents())
    if run.loop.recorder.num_decided and OutputFile.TABLE in run.outputs:
        written.append(write_parquet(folder, run.ledger, decode))
    return written
