"""A process of pytest-xdist collects a test file when it comes to run it; otherwise every process would collect all.

To pytest-xdist a file is one item, `TestFile`: that is what is handed out, and named where a process dies.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


class TestFile(pytest.Item):
    """A file whose tests are not known yet."""

    __test__ = False

    def runtest(self) -> None:
        """Never called: `pytest_runtest_protocol` runs its tests in its place."""


def register(config: pytest.Config) -> None:
    """Only where pytest-xdist hands out files: a test that is named by its path is collected as ever."""
    if hasattr(config, "workerinput") and not any("::" in path for path in config.args):
        config.pluginmanager.register(sys.modules[__name__])


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> TestFile:
    nodeid = module_path.relative_to(parent.config.rootpath).as_posix()
    return TestFile.from_parent(parent, name=module_path.name, path=module_path, nodeid=nodeid)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """A file stays whatever -m and -k say: they choose among its tests."""
    files = [item for item in items if isinstance(item, TestFile)]
    yield
    if files:
        items[:] = files


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not isinstance(item, TestFile):
        return None
    session, hook = item.session, item.config.hook
    tests = list(session.genitems(pytest.Module.from_parent(item.parent, path=item.path)))
    hook.pytest_collection_modifyitems(session=session, config=item.config, items=tests)
    place = session.items.index(item)
    for test, following in zip(tests, [*tests[1:], nextitem], strict=False):
        session.items[place] = test  # pytest-xdist takes reports of the item in this place alone
        hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.shouldfail or session.shouldstop:
            break
    session.items[place] = item
    if not tests:  # what the test before left standing for this file, its folder, is not the next one's
        session._setupstate.teardown_exact(nextitem)
    return True
