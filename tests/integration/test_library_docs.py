"""The examples of docs/library.md give what the page says."""

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_examples_of_the_page_give_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 20
    extras = {id(one): re.search(r"# \[(\w+)\]$", one.source.strip()) for one in test.examples}
    assert {named[1] for named in extras.values() if named} == {"gluonts", "sktime"}
    test.examples = [one for one in test.examples if not (named := extras[id(one)]) or find_spec(named[1])]
    said = []
    found = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=said.append)
    assert found.failed == 0, "".join(said)
