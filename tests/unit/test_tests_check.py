"""Every test of the project checks something whenever it passes: none loops over nothing, or asserts in one branch."""

from pathlib import Path

import pytest

from sure_checks import unsure_tests

TESTS = Path(__file__).parents[1]
# What is called raises where something is wrong; that it does is tested beside.
ONLY_THAT_NOTHING_IS_RAISED = {
    "test_no_bytes_crash_a_parser",
    "test_the_defaults_lie_within_their_bounds",
}
SURE = (
    "assert f()",
    "for x in (1, 2):\n    assert x",
    "for x in nonempty(f()):\n    assert x",
    "for k in range(3):\n    assert f(k)",
    "for a, b in zip(f(), (1, 2), strict=True):\n    assert a == b",
    "for kind in Kind:\n    assert kind",
    "if f():\n    assert 1\nelse:\n    assert 2",
    "if f():\n    assert 1\n    return\nassert 2",
    "with pytest.raises(ValueError):\n    f()",
    "with g():\n    assert f()",
    "np.testing.assert_allclose(f(), 1.0)",
    "cases = [f(k) for k in range(3)]\nfor case in cases:\n    assert case",
    "def check(x):\n    assert x\ncheck(f())",
    "try:\n    f()\nfinally:\n    assert g()",
)
UNSURE = (
    "f()",
    "for x in f():\n    assert x",
    "for x in []:\n    assert x",
    "for a, b in zip(f(), (1, 2)):\n    assert a == b",
    "for k in range(f()):\n    assert k",
    "while f():\n    assert g()",
    "if f():\n    assert g()",
    "if f():\n    return\nassert g()",
    "for x in (1, 2):\n    if x > f():\n        continue\n    assert x",
    "with suppress(ValueError):\n    f()",
    "def check(x):\n    assert x",
    "found = [x for x in (1, 2) if x > f()]\nfor x in found:\n    assert x",
    "try:\n    assert f()\nexcept ValueError:\n    pass",
)


def test_no_test_passes_without_a_check() -> None:
    unsure = {
        f"{file.name}:{test.lineno} {test.name}" for file, test in unsure_tests(sorted(TESTS.rglob("*.py")))
    }
    named = {words.rpartition(" ")[2] for words in unsure}
    assert named <= ONLY_THAT_NOTHING_IS_RAISED, sorted(unsure)


def _found(folder: Path, body: str) -> list[str]:
    file = folder / "test_it.py"
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    file.write_text(f"def test_it():\n{indented}")
    return [test.name for _, test in unsure_tests([file])]


@pytest.mark.parametrize("body", SURE)
def test_what_surely_checks_is_let_be(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body) == []


@pytest.mark.parametrize("body", UNSURE)
def test_what_may_pass_without_a_check_is_found(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body) == ["test_it"]
