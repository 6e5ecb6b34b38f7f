"""Group duplicates around the image to keep, and collapse exact copies first.

Which image to keep: the one with most pixels, then the largest file (the least compressed), then the oldest, then the
first by id. `collapse` replaces images with equal keys (hash of a file, or of its pixels) by one of them: a thousand
copies of one image are one group with 999 pairs, never half a million.

`form_groups` makes stars, not connected components, because components chain: a collage of A and B would join
everything like A to everything like B. In a star every member is verified against the kept image itself, and the
regions of that image that the members show have a common part. An image linked to a group only through a member is
checked against the centre (`check`) before it joins.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from resight.boxes import area, intersect
from resight.store import ImageRecord
from resight.types import Box


def keeper_rank(record: ImageRecord) -> tuple[float, float, float, str]:
    """Sort key; the smallest is kept."""
    width, height = record.size
    if record.ref.box is not None:
        x0, y0, x1, y1 = record.ref.box
        width, height = round(x1 - x0), round(y1 - y0)
    return -width * height, -record.bytes, record.modified_ns, record.id


@dataclass(frozen=True)
class Collapsed:
    kept: tuple[ImageRecord, ...]  # in the given order
    copies: Mapping[str, tuple[str, ...]]  # id of a kept one → ids of its copies


def collapse(records: Sequence[ImageRecord], key: Callable[[ImageRecord], str]) -> Collapsed:
    """Keep one image per key. An image with an empty key has no copies; a region is a copy of the same region only."""
    members: dict[tuple[str, object], list[ImageRecord]] = {}
    for record in records:
        members.setdefault((key(record) or f"only {record.id}", record.ref.box), []).append(record)
    best = {name: min(same, key=keeper_rank) for name, same in members.items()}
    copies = {
        best[name].id: tuple(record.id for record in same if record.id != best[name].id)
        for name, same in members.items()
        if len(same) > 1
    }
    left_out = {name for others in copies.values() for name in others}
    return Collapsed(tuple(record for record in records if record.id not in left_out), copies)


def join(first: Mapping[str, tuple[str, ...]], second: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Merge two rounds of copies: an image kept in the first may be a copy in the second."""
    joined = dict(first)
    for kept, others in second.items():
        inherited = [name for other in others for name in (other, *joined.pop(other, ()))]
        joined[kept] = (*joined.get(kept, ()), *inherited)
    return joined


COMMON = 0.5  # share of the smaller of two regions that must lie in the other
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Link:
    """Two images (numbers) of the same instance, and where each lies in the other, in fractions of its sides."""

    a: int
    b: int
    probability: float
    region_a: Box = WHOLE  # the part of a that b shows
    region_b: Box = WHOLE

    def other(self, node: int) -> int:
        return self.b if node == self.a else self.a

    def region_in(self, node: int) -> Box:
        return self.region_a if node == self.a else self.region_b


Check = Callable[[int, int], Link | None]


@dataclass
class _Star:
    centre: int
    members: set[int]
    core: Box = WHOLE  # the part of the centre that all members show

    def admit(self, link: Link) -> bool:
        region = link.region_in(self.centre)
        common = intersect(self.core, region)
        if area(common) < COMMON * min(area(self.core), area(region)):
            return False
        self.core = common
        self.members.add(link.other(self.centre))
        return True


def form_groups(order: Sequence[int], links: Iterable[Link], check: Check | None = None) -> dict[int, int]:
    """Image → centre of its group (centres included); images without a group are missing.

    `order` lists the possible centres in keeper order.
    """
    around: dict[int, list[Link]] = {}
    for link in links:
        around.setdefault(link.a, []).append(link)
        around.setdefault(link.b, []).append(link)
    stars = _build_stars(order, around)
    if check is not None:
        _attach_singles(order, around, stars, check)
    return {node: star.centre for node, star in stars.items() if star.members}


def _build_stars(order: Sequence[int], around: Mapping[int, list[Link]]) -> dict[int, _Star]:
    """Greedy: each image without a group gathers its neighbours without a group. Image → its star."""
    stars: dict[int, _Star] = {}
    for node in order:
        if node in stars or node not in around:
            continue
        star = _Star(node, set())
        for link in sorted(around[node], key=lambda link: (-link.probability, link.other(node))):
            other = link.other(node)
            if other not in stars and star.admit(link):
                stars[other] = star
        stars[node] = star
    return stars


def _attach_singles(
    order: Sequence[int], around: Mapping[int, list[Link]], stars: dict[int, _Star], check: Check
) -> None:
    """Let single images join a neighbour's group if its centre matches them too. Changes `stars`."""
    for node in order:
        if node not in stars or stars[node].centre != node or stars[node].members:
            continue
        tried = {node}
        for link in sorted(around[node], key=lambda link: -link.probability):
            goal = stars.get(link.other(node))
            # A neighbour that is a centre itself has refused the image before.
            if goal is None or goal.centre in tried or goal.centre == link.other(node):
                continue
            tried.add(goal.centre)
            found = check(node, goal.centre)
            if found is not None and goal.admit(found):
                stars[node] = goal
                break
