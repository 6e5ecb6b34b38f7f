"""A shelf, and the intake of the service for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from support.shelf import Shelf

from resight.apps.service.jobs.intake import Intake
from resight.collection import Collection


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture
def intake(shelf: Shelf) -> Iterator[Intake]:
    made = Intake("photos", cast(Collection, shelf))
    yield made
    made.close()
