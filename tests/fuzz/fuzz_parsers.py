"""Coverage-guided fuzzing of one parser, by hand: python tests/fuzz/fuzz_parsers.py TARGET [-max_total_time=60 …].

Needs atheris (pip install atheris). A finding ends it with a traceback and leaves the bytes in crash-…; add them to
SEEDS in parser_targets when it is mended.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["htfi.adapters.feeds", "htfi.pipeline.intake"]):
    from parser_targets import SEEDS, TARGETS, WORDS


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    name = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as folder:
        seeds, words = Path(folder, "seeds"), Path(folder, "words")
        seeds.mkdir()
        for place, seed in enumerate(SEEDS[name]):
            (seeds / f"{place}").write_bytes(seed)
        words.write_text(
            "".join(
                '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in WORDS if len(word) < 60
            )
        )
        limits = [f"-dict={words}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=20000"]
        atheris.Setup([sys.argv[0], *limits, *sys.argv[1:], str(seeds)], TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
