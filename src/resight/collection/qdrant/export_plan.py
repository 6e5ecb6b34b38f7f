"""The plan of an export: which branch becomes which named vector, and the marker that records it.

In: a collection, or the marker of an existing export. Out: a Plan.

    global    one vector per image, searched by a graph over int8 codes: the rows of the first branch with one vector
              per image, or else the mean of the tokens, of unit length
    tokens    many vectors per image, MaxSim, without a graph: they order the shortlist by `global`

The marker is the payload of a point without vectors, so that no search finds it. Its state is "writing" from before the
first image to after the last: so an interrupted export can be recognised.
"""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import Any, Literal

import numpy as np

from resight.collection import Collection
from resight.encode.query import TOKEN_DESCRIPTORS
from resight.errors import CollectionError, RecipeError, SpaceMismatch, VersionMismatch
from resight.index.qdrant_backend.backend import Backend, Point, VectorLayout
from resight.types import Branch, Descriptors, FloatArray

FORMAT = 1
GLOBAL, TOKENS = "global", "tokens"
USUAL_SHORTLIST = 1000
NAMESPACE = uuid.UUID("5b0a2f0e-3c1c-5d0a-9a53-7265736967c8")
MARK = "resight"  # the key in the marker's payload
ONE_VECTOR = ("pooled", "vlad")
State = Literal["writing", "complete"]


@dataclass(frozen=True)
class Plan:
    """`spaces` has the space of each named vector; `kinds` the kinds of an attribute's values: number, text, truth."""

    global_branch: int | None  # None: the mean of the tokens
    tokens_branch: int | None  # None: answers keep the order of `global`
    spaces: Mapping[str, str]
    shortlist: int = USUAL_SHORTLIST
    kinds: Mapping[str, list[str]] = field(default_factory=dict)
    images: int = 0

    @property
    def two_stages(self) -> bool:
        """Whether the recipe itself has both vectors; otherwise `global` replaces a search through all tokens."""
        return self.global_branch is not None and self.tokens_branch is not None

    @property
    def meaning(self) -> str:
        """What `global` is."""
        return "the mean of the tokens" if self.global_branch is None else f"branch {self.global_branch}"

    def make_global(self, rows: tuple[Descriptors | None, Descriptors | None]) -> FloatArray | None:
        """The vector of one image, from its rows of the global branch and of the token branch; None without rows."""
        own, tokens = rows
        if self.global_branch is not None:
            return np.asarray(own.vectors[0], np.float32) if own is not None and len(own) else None
        mean = np.asarray(tokens.vectors, np.float32).mean(axis=0) if tokens is not None and len(tokens) else None
        length = 0.0 if mean is None else float(np.linalg.norm(mean))
        return np.asarray(mean / length, np.float32) if mean is not None and length > 0 else None


def make_plan(collection: Collection, shortlist: int | None = None) -> Plan:
    branches, spaces = collection.recipe.branches, collection.metadata.spaces
    vectors = _find(branches, ONE_VECTOR)
    tokens = _find(branches, TOKEN_DESCRIPTORS)
    if vectors is None and tokens is None:
        raise RecipeError(
            "Qdrant cannot hold the descriptors of this collection",
            expected="a branch with one vector per image (pooled, vlad), or with tokens (aggregated, tokens)",
            actual=", ".join(branch.descriptor.name for branch in branches),
            fix="index the images by another recipe, e.g. --preset tokens",
        )
    named = {GLOBAL: spaces[vectors] if vectors is not None else f"mean of {spaces[tokens or 0]}"}
    if tokens is not None:
        named[TOKENS] = spaces[tokens]
    return Plan(vectors, tokens, named, shortlist or _choose_shortlist(collection))


def lay_out(plan: Plan, collection: Collection) -> dict[str, VectorLayout]:
    """The named vectors; sizes are those of the stored rows."""
    sizes = [layout.dim for layout in collection.view().layout]
    source = plan.tokens_branch if plan.global_branch is None else plan.global_branch
    assert source is not None, "a plan has a branch"
    layout = {GLOBAL: VectorLayout(sizes[source], graph=True, int8=True)}
    if plan.tokens_branch is not None:
        layout[TOKENS] = VectorLayout(sizes[plan.tokens_branch], many=True, int8=True)
    return layout


def write_marker(plan: Plan, backend: Backend, state: State) -> None:
    marker = {"format": FORMAT, "made_by": f"resight {metadata.version('resight')}", "state": state}
    content = {**marker, "global": plan.meaning, "plan": asdict(plan)}
    backend.upsert([Point(MARKER_NUMBER, {}, {MARK: content})])


def read_marker(backend: Backend) -> tuple[Plan, State] | None:
    """The plan of an export and its state; None without a marker."""
    found = (backend.read_payload(MARKER_NUMBER) or {}).get(MARK)
    if found is None:
        return None
    if found.get("format") != FORMAT:
        raise VersionMismatch(
            f"{backend.where} is an export of another format",
            expected=f"format {FORMAT}",
            actual=f"{found.get('format')}, made by {found.get('made_by')}",
            fix="use that version of resight, or export again under another name",
        )
    return Plan(**found["plan"]), found["state"]


def require_complete(backend: Backend) -> Plan:
    """The plan of an export that can be searched."""
    marked = read_marker(backend) if backend.layout() else None
    if marked is None:
        raise CollectionError(
            f"there is no export in {backend.where}",
            expected="a Qdrant collection that `resight export` wrote",
            actual="nothing, or another program's collection",
            fix="check the name, or export the collection first",
        )
    plan, state = marked
    if state != "complete":
        raise CollectionError(
            f"the export in {backend.where} is not complete",
            expected="an export that was completed",
            actual="one that is being written, or was interrupted",
            fix="run `resight export` again: it continues where it stopped",
        )
    return plan


def check_spaces(plan: Plan, wanted: Plan, backend: Backend) -> None:
    if dict(plan.spaces) != dict(wanted.spaces):
        raise SpaceMismatch(
            f"{backend.where} holds descriptors of another kind",
            expected=_format(wanted.spaces),
            actual=_format(plan.spaces),
            fix="use the collection that it was exported from, or another name",
        )


def note_images(plan: Plan, kinds: Mapping[str, list[str]], images: int) -> Plan:
    return replace(plan, kinds=kinds, images=images)


def number_image(name: str) -> str:
    """The UUID of the point of an image: the same for the same id, in every export."""
    return str(uuid.uuid5(NAMESPACE, f"image {name}"))


MARKER_NUMBER = str(uuid.uuid5(NAMESPACE, "mark"))


def _find(branches: tuple[Branch, ...], descriptors: tuple[str, ...]) -> int | None:
    """The first such branch over whole images; a branch of the shortlist comes before others."""
    fitting = [
        (branch.weight <= 0, number)
        for number, branch in enumerate(branches)
        if branch.descriptor.name in descriptors and branch.regions is None
    ]
    return min(fitting)[1] if fitting else None


def _choose_shortlist(collection: Collection) -> int:
    """As many as the recipe's `late` reranker orders, if it has one."""
    late = [choice for choice in collection.recipe.rerankers if choice.name == "late"]
    if not late:
        return USUAL_SHORTLIST
    share = late[0].settings.get("share", 0)
    return max(round(share * len(collection)), 1) if share else int(late[0].settings.get("candidates", 100))


def _format(spaces: Mapping[str, Any]) -> str:
    return " | ".join(f"{name}: {space}" for name, space in sorted(spaces.items()))
