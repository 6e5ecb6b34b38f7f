"""Trainings of a folder: /api/trainings lists those that run or have run, /api/trainings/curves gives one's curves."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter

from resight.apps.service import schemas
from resight.apps.service.error_responses import refuse_unknown
from resight.apps.service.serializers import Json, Plain
from resight.apps.service.state import Service
from resight.train.logger import FILE, read_curves

MOST = 200  # trainings
DEEP = 3  # folders below the one that is served: OUT, an alternative, a stage
POINTS = 1000  # of a curve; a long one is thinned out


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["trainings"])

    @routes.get("/api/trainings", response_model=list[schemas.Training])
    async def list_trainings() -> Json:
        """The one that was written to last comes first."""
        return Json(await run_sync(lambda: _tell_trainings(service.settings.training)))

    @routes.get("/api/trainings/curves", response_model=schemas.TrainingCurves)
    async def read_training(name: str) -> Json:
        """Loss and learning rate of steps, thinned out where there are many, and every validation."""
        files = await run_sync(lambda: _list_files(service.settings.training))
        if name not in files:
            raise refuse_unknown("training", name[:80])
        return Json(await run_sync(lambda: _tell_curves(name, files[name])))

    return routes


def _tell_trainings(folder: Path | None) -> list[Plain]:
    found: list[Plain] = [
        {"name": name, "modified": path.stat().st_mtime} for name, path in _list_files(folder).items()
    ]
    return sorted(found, key=lambda one: (-one["modified"], one["name"]))


def _tell_curves(name: str, path: Path) -> Plain:
    lines = list(read_curves(path))
    steps = thin_out([line for line in lines if "loss" in line])
    return {
        "name": name,
        "steps": [line["step"] for line in steps],
        "losses": [_tell_number(line["loss"]) for line in steps],
        "rates": [line["rate"] for line in steps],
        "validated": [line["step"] for line in lines if "validation" in line],
        "validations": [_tell_number(line["validation"]) for line in lines if "validation" in line],
        "epoch": lines[-1]["epoch"] + 1 if lines else 0,
        "seconds": lines[-1]["seconds"] if lines else 0,
    }


def _tell_number(value: float) -> float | None:
    """JSON has no NaN; a loss may be one."""
    return value if math.isfinite(value) else None


def thin_out(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every so manieth line, and always the last."""
    stride = -(-len(lines) // POINTS) or 1
    kept = list(lines[::stride])
    return kept if not lines or kept[-1] is lines[-1] else [*kept, lines[-1]]


def _list_files(folder: Path | None) -> Mapping[str, Path]:
    """Folder of the training, below the one that is served → its curves; links are not followed."""
    if folder is None:
        return {}
    root = folder.resolve()
    found = sorted(_walk(root))[:MOST]
    return {path.parent.relative_to(root).as_posix(): path for path in found}


def _walk(root: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        if FILE in files:
            yield Path(place) / FILE
        if len(Path(place).relative_to(root).parts) >= DEEP:
            folders.clear()
