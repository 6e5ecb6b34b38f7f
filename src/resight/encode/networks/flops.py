"""Parameters and arithmetic of each part of the network.

In: a network and the side of its input. Out: a Cost a part. Operations are multiplications with their additions, of
convolutions and matrices, for one image; what norms, activations and poolings add is below one in a hundred.
"""

from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from resight.encode.networks.cider.network import CiderNetwork


@dataclass(frozen=True)
class Cost:
    """Of one part of a network."""

    part: str
    parameters: int
    operations: int  # multiplications with their additions, for one image of the usual size


def count_costs(network: CiderNetwork, size: int = 224) -> list[Cost]:
    """In the order in which the parts run."""
    values: torch.Tensor = torch.zeros(1, 3, size, size, device=next(network.parameters()).device)
    was_training = network.training
    network.eval()
    costs = []
    with torch.no_grad():
        for name, part in network.parts.items():
            with FlopCounterMode(display=False) as counter:
                result = part(values)
            values = result[0] if isinstance(result, tuple) else result
            parameters = sum(parameter.numel() for parameter in part.parameters())
            costs.append(Cost(name, parameters, counter.get_total_flops() // 2))
    network.train(was_training)
    return costs
