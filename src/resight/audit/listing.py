"""Judged pairs of rows, exact copies and groups → the pairs that people read, by id."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from resight.audit.groups import Check, Link, form_groups
from resight.audit.judging import tell_kind
from resight.audit.pairs import Kind, Pair
from resight.audit.verification import Finding


@dataclass(frozen=True)
class Judged:
    """A finding with the probability that both show the same thing."""

    finding: Finding
    probability: float
    machine: float | None = None  # the probability before votes corrected it; None: they did not

    @property
    def kind(self) -> Kind:
        return tell_kind(self.finding)

    def link(self, shift: int = 0) -> Link:
        """`shift`: where the rows of the second side begin, when both are numbered together."""
        found, laid = self.finding, self.finding.registration
        return Link(found.a, found.b + shift, self.probability, laid.region_a, laid.region_b)


def list_within(
    ids: Sequence[str],
    order: Sequence[int],
    judged: Mapping[tuple[int, int], Judged],
    copies: Mapping[str, tuple[str, ...]],
    check: Check,
) -> list[Pair]:
    """`judged` may grow while `check` is asked. Exact copies join the group of the one that stands for them."""
    centres = form_groups(order, [one.link() for one in judged.values()], check)
    by_id = {ids[row]: ids[centre] for row, centre in centres.items()}
    by_id |= {kept: kept for kept in copies if kept not in by_id}
    numbers = _number(order, ids, by_id)
    pairs = [_pair(ids[a], ids[b], one, by_id, numbers) for (a, b), one in judged.items()]
    exact = [(kept, other) for kept, others in copies.items() for other in others]
    return pairs + [Pair(a, b, "copy", 1.0, numbers[by_id[a]], by_id[a]) for a, b in exact]


def list_between(
    ids: tuple[Sequence[str], Sequence[str]],
    order: Sequence[int],
    judged: Mapping[tuple[int, int], Judged],
    equal: Iterable[tuple[int, int]],
    copies: Mapping[str, tuple[str, ...]],
) -> list[Pair]:
    """What the first collection has is kept; every image of the second is in the group of one of the first, or in none.

    `equal` are exact copies of each other, row by row; `copies` are those within the second collection.
    """
    shift = len(ids[0])
    exact = set(equal)
    links = [one.link(shift) for rows, one in judged.items() if rows not in exact]
    likeliest: dict[int, Link] = {}  # of each image of the second
    for link in sorted([*links, *(Link(a, b + shift, 1.0) for a, b in exact)], key=lambda link: -link.probability):
        likeliest.setdefault(link.b, link)
    centres = form_groups(order, likeliest.values())
    numbers = {centre: number for number, centre in enumerate(dict.fromkeys(c for c in order if c in centres), start=1)}
    pairs: list[Pair] = []
    for a, b in sorted({*judged, *exact}):
        together = centres.get(b + shift) == a
        group, keep = (numbers[a], ids[0][a]) if together else (None, "")
        kind: Kind = "copy" if (a, b) in exact else judged[a, b].kind
        chances = (1.0, None) if (a, b) in exact else (judged[a, b].probability, judged[a, b].machine)
        names = (ids[1][b], *copies.get(ids[1][b], ()))
        pairs += [Pair(ids[0][a], name, kind, chances[0], group, keep, chances[1]) for name in names]
    return pairs


def _pair(a: str, b: str, one: Judged, centres: Mapping[str, str], numbers: Mapping[str, int]) -> Pair:
    """The image that is kept comes first, if it is one of the two."""
    together = a in centres and centres[a] == centres.get(b)
    if not together:
        return Pair(a, b, one.kind, one.probability, machine=one.machine)
    keep = centres[a]
    a, b = (b, a) if b == keep else (a, b)
    return Pair(a, b, one.kind, one.probability, numbers[keep], keep, one.machine)


def _number(order: Sequence[int], ids: Sequence[str], centres: Mapping[str, str]) -> dict[str, int]:
    """Groups count from 1, in the order in which their kept images are ranked."""
    kept = set(centres.values())
    return {name: number for number, name in enumerate((ids[row] for row in order if ids[row] in kept), start=1)}
