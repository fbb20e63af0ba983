"""The pytest plugin that runs the tests of a list alone: ``-p tools.coverage.selection``.

pytest refuses to run anything where one id of many is no longer that of a test, and a record may be
older than the tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the path of the list, which has an id, or the path of a file of tests, a line."""
    parser.addoption("--selected", type=Path, required=True, help="file of ids of tests to run")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist adds groups to the ids
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the list does not have, and what is slow in a file that it has as a whole."""
    wanted = set(config.getoption("--selected").read_text(encoding="utf-8").splitlines())

    def selected(item: pytest.Item) -> bool:
        whole = item.nodeid.partition("::")[0] in wanted and not item.get_closest_marker("slow")
        return item.nodeid in wanted or whole

    left = [item for item in items if not selected(item)]
    items[:] = [item for item in items if selected(item)]
    config.hook.pytest_deselected(items=left)
