"""The examples of docs/library.md, of docs/tutorial.md and of every public name give what is said."""

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import htfi

DOCS = Path(__file__).parents[2] / "docs"
EXTRA = re.compile(r"# \[(\w+)\]$")  # of an example that needs the package


def failures(test: doctest.DocTest) -> str:
    """What the examples that fail gave."""
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=said.append)
    return "".join(said)


@pytest.fixture(autouse=True)
def temporary_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "num", "named_extras"), [("library.md", 20, {"gluonts", "sktime"}), ("tutorial.md", 4, set())]
)
def test_the_examples_of_a_page_give_what_it_says(name, num, named_extras):
    page = DOCS / name
    text = page.read_text(encoding="utf-8").replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert len(test.examples) > num
    extras = {id(one): EXTRA.search(one.source.strip()) for one in test.examples}
    assert {named[1] for named in extras.values() if named} == named_extras
    test.examples = [one for one in test.examples if not (named := extras[id(one)]) or find_spec(named[1])]
    assert failures(test) == ""


@pytest.mark.parametrize("name", htfi.__all__)
def test_every_public_name_has_an_example_that_gives_what_it_says(name):
    words = getattr(htfi, name).__doc__
    assert "Examples:" in words
    test = doctest.DocTestParser().get_doctest(words.partition("Examples:")[2], {}, name, None, 0)
    assert any(name in example.source for example in test.examples) or name[0].isupper()
    assert len(test.examples) > 1
    assert failures(test) == ""
