"""Trainings in a folder, running or done: /api/trainings lists them, /api/trainings/curves returns one's curves."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends

from resight.apps.service import schemas
from resight.apps.service.auth import require_full_scope
from resight.apps.service.error_responses import not_found
from resight.apps.service.serializers import AsciiJSONResponse, JsonObject
from resight.apps.service.state import Service
from resight.train.metric_logger import FILE, read_metrics

MAX_TRAININGS = 200
MAX_DEPTH = 3  # folders below the one that is served: OUT, an alternative, a stage
MAX_POINTS = 1000  # per curve; longer ones are thinned


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["trainings"], dependencies=[Depends(require_full_scope)])

    @routes.get("/api/trainings", response_model=list[schemas.Training])
    async def list_trainings() -> AsciiJSONResponse:
        """The most recently written first."""
        return AsciiJSONResponse(await run_sync(lambda: _serialize_trainings(service.settings.training)))

    @routes.get("/api/trainings/curves", response_model=schemas.TrainingCurves)
    async def read_training(name: str) -> AsciiJSONResponse:
        """Loss and learning rate per step, thinned where there are many, and every validation."""
        files = await run_sync(lambda: _list_files(service.settings.training))
        if name not in files:
            raise not_found("training", name[:80])
        return AsciiJSONResponse(await run_sync(lambda: _serialize_curves(name, files[name])))

    return routes


def _serialize_trainings(folder: Path | None) -> list[JsonObject]:
    found: list[JsonObject] = [
        {"name": name, "modified": path.stat().st_mtime} for name, path in _list_files(folder).items()
    ]
    return sorted(found, key=lambda one: (-one["modified"], one["name"]))


def _serialize_curves(name: str, path: Path) -> JsonObject:
    lines = list(read_metrics(path))
    steps = thin([line for line in lines if "loss" in line])
    return {
        "name": name,
        "steps": [line["step"] for line in steps],
        "losses": [_serialize_number(line["loss"]) for line in steps],
        "rates": [line["rate"] for line in steps],
        "validated": [line["step"] for line in lines if "validation" in line],
        "validations": [_serialize_number(line["validation"]) for line in lines if "validation" in line],
        "epoch": lines[-1]["epoch"] + 1 if lines else 0,
        "seconds": lines[-1]["seconds"] if lines else 0,
    }


def _serialize_number(value: float) -> float | None:
    """JSON has no NaN, but a loss may be NaN."""
    return value if math.isfinite(value) else None


def thin(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most about MAX_POINTS lines, evenly spaced, and always the last."""
    stride = -(-len(lines) // MAX_POINTS) or 1
    kept = list(lines[::stride])
    return kept if not lines or kept[-1] is lines[-1] else [*kept, lines[-1]]


def _list_files(folder: Path | None) -> Mapping[str, Path]:
    """Relative folder of a training → its curves; does not follow links."""
    if folder is None:
        return {}
    root = folder.resolve()
    found = sorted(_walk(root))[:MAX_TRAININGS]
    return {path.parent.relative_to(root).as_posix(): path for path in found}


def _walk(root: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(root):
        if FILE in files:
            yield Path(parent) / FILE
        if len(Path(parent).relative_to(root).parts) >= MAX_DEPTH:
            folders.clear()
