"""Metrics of a running training: one line of JSON per step and per validation, and TensorBoard.

    {"step": 12, "epoch": 0, "loss": 3.1, "rate": 0.001, "seconds": 4.2}
    {"step": 40, "epoch": 0, "validation": 0.61, "seconds": 20.5}

`curves.jsonl` grows by one line at a time; a resumed run first removes the lines after its checkpoint. `tensorboard/`
beside it holds the same metrics if the package tensorboard is installed.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resight.files.atomic import write_atomic
from resight.files.documents import load_json

FILE = "curves.jsonl"


class MetricLogger:
    """Writes to `folder`, after removing the lines after `step` and the validations of `epoch` or later."""

    def __init__(self, folder: Path, step: int = 0, epoch: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lines = read_metrics(folder / FILE) if step else iter(())
        kept = [line for line in lines if line["step"] <= step and ("loss" in line or line["epoch"] < epoch)]
        with write_atomic(folder / FILE) as temporary:
            temporary.write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")
        self._file = (folder / FILE).open("a", encoding="utf-8", buffering=1)
        self._board = _open_board(folder / "tensorboard", step)
        self.seconds = float(kept[-1]["seconds"]) if kept else 0.0  # of training before this run

    def write(self, step: int, epoch: int, seconds: float, **values: float) -> None:
        self._file.write(json.dumps({"step": step, "epoch": epoch, **values, "seconds": round(seconds, 3)}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete lines; a killed process may have left half of one."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            yield load_json(line)


def _open_board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1 if step else None)
