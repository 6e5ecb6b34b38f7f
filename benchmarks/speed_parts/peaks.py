"""What one core of this machine can do at best: multiply-adds in fp32 and int8, bytes read from memory."""

import statistics
from dataclasses import dataclass

import numpy as np

from resight.kernels import dispatch
from speed_parts.results import Run, interleave

ROUNDS = 3_000_000
READ_BYTES = 512 * 1024**2  # many times the caches


@dataclass(frozen=True)
class Peak:
    run: Run
    amount: float  # multiply-adds or bytes of one run


def list_peaks() -> dict[str, Peak]:
    """Of the compiled kernels' instructions; none where numpy serves."""
    module = dispatch.native()
    if module is None:
        return {}

    def peak(number: int) -> Peak:
        return Peak(lambda: module.peak(number, ROUNDS), module.peak(number, ROUNDS))

    return {"fp32": peak(0), "int8": peak(1)}


def measure_machine() -> dict[str, float]:
    """Billions a second: multiply-adds in "fp32" and "int8", bytes in "read"."""
    module = dispatch.native()
    if module is None:
        return {}
    memory = np.ones(READ_BYTES, np.uint8)
    peaks = {**list_peaks(), "read": Peak(lambda: module.peak_read(memory), module.peak_read(memory))}
    times = interleave({name: peak.run for name, peak in peaks.items()}, 9)
    return {name: peak.amount / statistics.median(times[name]) / 1e9 for name, peak in peaks.items()}
