"""Exact copies: images with equal keys (a file's hash, or that of its pixels) in, one representative of each out.

A thousand copies of one image, or a thousand blank pages, are one group with 999 pairs, never half a million.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from resight.audit.keep import rank
from resight.store import ImageRecord


@dataclass(frozen=True)
class Collapsed:
    kept: tuple[ImageRecord, ...]  # in the order in which they came
    copies: Mapping[str, tuple[str, ...]]  # id of a kept one → ids of its copies


def collapse(records: Sequence[ImageRecord], key: Callable[[ImageRecord], str]) -> Collapsed:
    """Images with an empty key are copies of none. A part of a picture is a copy only of the same part."""
    members: dict[tuple[str, object], list[ImageRecord]] = {}
    for record in records:
        members.setdefault((key(record) or f"only {record.id}", record.ref.box), []).append(record)
    best = {name: min(same, key=rank) for name, same in members.items()}
    copies = {
        best[name].id: tuple(record.id for record in same if record.id != best[name].id)
        for name, same in members.items()
        if len(same) > 1
    }
    left_out = {name for others in copies.values() for name in others}
    return Collapsed(tuple(record for record in records if record.id not in left_out), copies)


def join(first: Mapping[str, tuple[str, ...]], second: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Copies found one after the other: what was kept first may be a copy in the second round."""
    joined = dict(first)
    for kept, others in second.items():
        inherited = [name for other in others for name in (other, *joined.pop(other, ()))]
        joined[kept] = (*joined.get(kept, ()), *inherited)
    return joined
