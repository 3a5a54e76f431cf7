"""Marked texts of the shipped pair: the same tokens by every strategy, found in the text, and what the command says."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import htfi
from htfi import models
from htfi.adapters.keys import mark_key
from htfi.apps.cli.main import main
from htfi.decoding.config import STRATEGIES, DecodingConfig
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import Completion, ControlToken, FreeTextField, GenerationRequest, PlainText
from htfi.wiring.marking import open_key
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.models.speculation import speculative_generator
from htfi.wiring.settings import load_settings, override

PROMPT = "Shares of Acme fell after"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key that is the same in every run: of a hundred texts one cannot be found, and no test is about that one."""
    path = tmp_path_factory.mktemp("keys") / "mark.key"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mark_key.secrets, "token_bytes", lambda num: bytes(range(num)))
        htfi.make_mark_key(path)
    return path


@pytest.fixture(scope="module")
def text(key: Path) -> str:
    """Long enough to be found: a text ends where its model ends it."""
    writer = htfi.load_pair()
    written = (
        writer.generate(PROMPT, max_new_tokens=60, temperature=1.0, seed=seed, mark_key=key)
        for seed in range(7, 60)
    )
    return str(next(one for one in written if len(one.tokens) >= 36))


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `htfi mark …` in this process; gives exit status, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["htfi", "mark", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return run


def test_every_strategy_writes_the_tokens_of_plain_decoding(key: Path) -> None:
    settings = override(load_settings(), "models", target=str(models.TARGET), draft=str(models.DRAFT))
    pair = open_model_pair(settings.models)
    form = (FreeTextField("words", 24, ControlToken("/s")),)
    requests = [
        GenerationRequest((PlainText(PROMPT),), form, open_key(key).seed(seed), 1.0) for seed in range(3)
    ]
    written: dict[str, list[tuple[int, ...]]] = {}
    for strategy in STRATEGIES:
        answers = speculative_generator(*pair, DecodingConfig(strategy=strategy)).write(requests)
        written[strategy] = [answer.tokens for answer in answers if isinstance(answer, Completion)]
    assert {"plain", "chain", "tree", "outcomes", "jacobi"} <= written.keys()
    assert len(written["plain"]) == 3
    assert all(tokens == written["plain"] for tokens in written.values())


def test_a_marked_text_is_found_by_its_key_and_not_by_another(key: Path, text: str, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    htfi.make_mark_key(other)
    assert htfi.verify_mark(text, key).p_value < 1e-4
    assert htfi.verify_mark(text, other).p_value > 1e-3
    assert (
        htfi.verify_mark(str(htfi.load_pair().generate(PROMPT, temperature=1.0, seed=7)), key).p_value > 1e-3
    )


def test_a_stream_holds_the_same_mark(key: Path) -> None:
    writer = htfi.load_pair()
    asked = {"max_new_tokens": 60, "temperature": 1.0, "seed": 7, "mark_key": key}
    assert "".join(writer.generate(PROMPT, **asked, stream=True)) == str(writer.generate(PROMPT, **asked))


def test_text_without_noise_is_not_marked(key: Path) -> None:
    with pytest.raises(InvalidInput, match="at temperature 0 no noise chooses"):
        htfi.load_pair().generate(PROMPT, mark_key=key)


def test_a_rule_with_other_noise_is_refused(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTFI_DECODING__RULE", "rejection")
    with pytest.raises(InvalidInput, match="'rejection' takes other noise"):
        htfi.load_pair().generate(PROMPT, temperature=1.0, mark_key=key)


def test_the_command_makes_a_key_that_only_its_owner_reads(mark: Run, tmp_path: Path) -> None:
    file = tmp_path / "mark.key"
    code, out, err = mark("key", file)
    assert (code, err) == (0, "")
    assert out == f"made marking key {open_key(file).id} in {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    code, _, err = mark("key", file)
    assert (code, err) == (
        1,
        f"htfi: {file} exists already: keys are never overwritten: choose another file\n",
    )


def test_the_command_says_one_line_or_json(mark: Run, key: Path, text: str, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text(text, encoding="utf-8")
    code, out, _ = mark("verify", file, "--key", key)
    assert code == 0
    assert out.startswith("p = ")
    assert out.count("\n") == 1
    assert f"256 seeds of key {open_key(key).id}" in out
    code, out, _ = mark("verify", text, "--key", key, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["p_value"] < 1e-4
    assert 40.0 < found["capacity_nats"] < 400.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nonsense", "expected one line MARK+KEY+id+base64"),
        ("MARK+KEY+0000000000000000+" + "A" * 43 + "=", "its id does not match, the file was altered"),
    ],
)
def test_a_file_that_is_no_key_is_one_line(mark: Run, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "bad.key"
    file.write_text(content + "\n", encoding="utf-8")
    code, out, err = mark("verify", "some text", "--key", file)
    assert (code, out) == (1, "")
    assert err == f"htfi: {file} is not a marking key: {words}\n"


@pytest.mark.parametrize("num", [3_000, 300_000])
def test_a_text_that_would_take_minutes_is_refused_in_one_line(
    mark: Run, key: Path, tmp_path: Path, num: int
) -> None:
    file = tmp_path / "long.txt"
    file.write_text("orders fell " * num, encoding="utf-8")
    status, out, err = mark("verify", file, "--key", key)
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    assert "has more than 4,096 tokens, which would take minutes: name a passage of it" in err


def test_what_is_missing_is_one_line(mark: Run, key: Path, tmp_path: Path) -> None:
    assert mark("verify", "some text")[2].startswith("htfi: give --key FILE")
    assert "there is no marking key" in mark("verify", "some text", "--key", tmp_path / "none")[2]
    assert mark("verify", "", "--key", key)[2].startswith("htfi: the text is empty")
    assert "there is no ledger" in mark("verify", "some text", "--run", tmp_path / "none")[2]


def test_a_file_that_is_missing_or_no_text_is_not_taken_for_words(
    mark: Run, key: Path, tmp_path: Path
) -> None:
    (tmp_path / "picture.bin").write_bytes(bytes(range(256)))
    missing = tmp_path / "none.txt"
    assert f"there is no file {missing}" in mark("verify", missing, "--key", key)[2]
    assert "there is no file letter.txt" in mark("verify", "letter.txt", "--key", key)[2]
    assert "holds no text in UTF-8" in mark("verify", tmp_path / "picture.bin", "--key", key)[2]
    assert mark("verify", "Shares of A/B fell", "--key", key)[0] == 0
