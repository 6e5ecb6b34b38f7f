"""`resight.plan(...)`: what an index would cost here, and on how many machines. `resight plan` calls it too."""

from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from resight import recipe as recipes
from resight.collection import DEFAULT
from resight.collection.plan.cluster import Figure, Node, Target, plan_cluster
from resight.collection.plan.probe import Plan, estimate
from resight.errors import InputError
from resight.frames import make_frame
from resight.tasks import check_number
from resight.types import Recipe

GIGABYTE = 10**9


@dataclass(frozen=True)
class IndexPlan:
    """What an index would cost; `resight.plan` returns it.

    Attributes:
        here: Time, memory and disk on this machine.
        cluster: The machines of a cluster, each figure with its derivation.
    """

    here: Plan
    cluster: tuple[Figure, ...]

    def to_frame(self) -> Any:
        """Convert to a data frame of pandas, or of polars if only that is installed.

        Returns:
            One row per figure of this machine and of the cluster: where, name, value, unit and how.
        """
        here = [
            ("time", self.here.seconds, "seconds"),
            ("memory", float(self.here.memory_bytes), "bytes"),
            ("store", float(self.here.store_bytes), "bytes"),
            ("index", float(self.here.index_bytes), "bytes"),
        ]
        rows = [
            *(("here", *row, f"{self.here.probed} images probed") for row in here),
            *(("cluster", one.name, float(one.value), one.unit, one.how) for one in self.cluster),
        ]
        names = ("where", "name", "value", "unit", "how")
        return make_frame(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def plan(
    source: str | Path | None = None,
    *,
    images: int | None = None,
    recipe: Recipe | str | Path | None = None,
    node_cores: int = 16,
    node_memory: float = 64,
    node_disk: float = 1000,
    price: float = 0.80,
    replication: int = 2,
    deadline: float = 168,
    latency: float = 500,
    shards: int | None = None,
) -> IndexPlan:
    """Estimate time, memory, disk and cost of an index. Probes a few images here, and writes nothing.

    Args:
        source: The folder or manifest to index; None: generated pictures are probed.
        images: Plan for this many such images.
        recipe: A shipped recipe, a TOML file or a Recipe; default: the default recipe.
        node_cores: Cores per machine.
        node_memory: Memory per machine, in GB.
        node_disk: Disk per machine, in GB.
        price: Price per machine and hour, in your currency.
        replication: Copies of each shard, on different machines.
        deadline: Hours to encode all images.
        latency: Milliseconds that one scan may take.
        shards: Parts of the index; default: one per machine.

    Returns:
        The cost on this machine, and of a cluster.

    Raises:
        InputError: There are no images, or `images` is no whole number of 1 or more.
        RecipeError: The recipe is unknown or invalid.

    Examples:
        >>> import resight
        >>> planned = resight.plan("photos", images=1_000_000, recipe="tokens")
        >>> planned.here.images, planned.here.probed
        (1000000, 10)
        >>> next(figure for figure in planned.cluster if figure.name == "search nodes").value >= 2
        True
    """
    sizes = {"node_memory": node_memory, "node_disk": node_disk, "deadline": deadline, "latency": latency}
    for name, value in sizes.items():
        check_number(name, value, 1e-3)
    check_number("price", price, 0)
    check_number("node_cores", node_cores, 1, whole=True)
    check_number("replication", replication, 1, whole=True)
    if shards is not None:
        check_number("shards", shards, 1, whole=True)
    if images is not None and not (isinstance(images, Real) and images >= 1 and float(images).is_integer()):
        raise InputError(
            "cannot plan for that many images",
            expected="a whole number of 1 or more, e.g. 1e9 or 1_000_000",
            actual=repr(images),
            fix="correct --images",
        )
    chosen = recipe if isinstance(recipe, Recipe) else recipes.load(recipe or DEFAULT)
    found = estimate(chosen, Path(source) if source else None, None if images is None else int(images))
    node = Node(node_cores, node_memory * GIGABYTE, node_disk * GIGABYTE, price)
    return IndexPlan(
        found, plan_cluster(found.rates, node, Target(found.images, replication, deadline, latency, shards))
    )
