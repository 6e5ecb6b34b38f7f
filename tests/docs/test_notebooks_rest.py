"""The other notebooks run, too: in a file of their own, so that two processes share the work."""

from pathlib import Path

import pytest
from support.notebooks import NOTEBOOKS, execute


@pytest.mark.parametrize("path", NOTEBOOKS[4:], ids=lambda path: path.stem)
def test_every_cell_runs_and_writes_nothing_beside_the_notebook(path: Path, tmp_path: Path) -> None:
    execute(path, tmp_path)
