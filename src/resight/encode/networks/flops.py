"""Parameters and operations of a network, counted from shapes alone.

In: a network on torch's meta device, which knows shapes and holds no values, so that a network of seven billion
parameters needs no memory; or any other network. Out: Counted for a whole Network, or a Cost for each part of a module.

Operations are multiplications, each with its addition, in convolutions and matrix products, for one image. torch counts
both halves, so its number is divided by two. Norms, activations, poolings and additions would add less than one per
cent, and no two counters agree on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from resight.encode.named_networks import Cost
from resight.encode.networks.torch_backbone import Network


@dataclass(frozen=True)
class Counted:
    parameters: int
    operations: int
    dimensions: int  # of the network's own vector; of a patch or cell where it has none


def count_network(network: Network, size: int) -> Counted:
    """Count one forward pass of an image of size × size pixels; the network's parameters no longer want gradients."""
    module = network.module.eval().requires_grad_(False)  # with gradients, torch's counter loses track of its modules
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        outputs = network.run(_make_planes(module, size))
    vectors = outputs.patches if outputs.head is None else outputs.head
    return Counted(_count_parameters(module), counter.get_total_flops() // 2, int(vectors.shape[-1]))


def count_costs(module: torch.nn.Module, parts: Mapping[str, torch.nn.Module], size: int) -> list[Cost]:
    """The Cost of each part of a module, in the order of `parts`."""
    paths = {part: path for path, part in module.named_modules()}
    was_training = module.training
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module.eval()(_make_planes(module, size))
    module.train(was_training)
    counts = counter.get_flop_counts()
    costs = []
    for name, part in parts.items():
        operations = sum(counts.get(f"{type(module).__name__}.{paths[part]}", {}).values()) // 2
        costs.append(Cost(name, _count_parameters(part), operations))
    return costs


def _make_planes(module: torch.nn.Module, size: int) -> torch.Tensor:
    return torch.zeros(1, 3, size, size, device=next(module.parameters()).device)


def _count_parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
