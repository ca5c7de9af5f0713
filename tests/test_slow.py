"""The list of slow tests names tests that exist."""

from __future__ import annotations

import pytest

from stack.home import PROJECT
from tests.slow import SLOW


@pytest.mark.parametrize("entry", SLOW)
def test_every_entry_fits(entry: str) -> None:
    """An entry that fits nothing any more lets its tests slip back into `make quick`."""
    path, _, name = entry.partition("[")[0].partition("::")
    assert (PROJECT / path).exists()
    if name:
        assert f"def {name}" in (PROJECT / path).read_text(encoding="utf-8")
