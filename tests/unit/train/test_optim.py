import pytest
import torch
from torch import nn

from resight.encode.networks.torch_backbone import ForwardHook
from resight.train.optim import find_rate, make_average, set_averaged_steps


def make(value: float) -> nn.Module:
    network = nn.BatchNorm1d(1)
    nn.init.constant_(network.weight, value)
    return network


def test_the_average_moves_by_what_the_decay_leaves():
    average = make_average(make(1.0), decay=0.9)
    set_averaged_steps(average, 1000)
    average.update_parameters(make(2.0))
    assert torch.allclose(average.module.weight, torch.tensor(1.1))


def test_at_the_start_the_decay_is_smaller():
    average = make_average(make(1.0), decay=0.9)
    average.update_parameters(make(2.0))  # a decay of 1/10
    assert torch.allclose(average.module.weight, torch.tensor(1.9))


def test_statistics_are_copied_and_the_network_stays_as_it_is():
    network = make(2.0)
    network.running_mean.fill_(5.0)
    average = make_average(make(1.0), decay=0.5)
    set_averaged_steps(average, 10)
    average.update_parameters(network)
    assert average.module.running_mean.item() == 5
    assert network.weight.item() == 2


class Reader(nn.Module):
    """Reads what passes through one of its modules, as a backbone does whose block is not the last."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.rest = nn.Linear(2, 2), nn.Linear(2, 1)
        self.seen = ForwardHook(self.block, "output")

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.rest(self.block(rows))
        return self.seen.take()


def test_the_copy_of_a_network_reads_its_own_block():
    network, rows = Reader(), torch.ones(1, 2)
    network(rows)
    average = make_average(network, decay=0.9).module
    with torch.no_grad():
        average.block.weight.fill_(2.0)
        average.block.bias.fill_(1.0)
    assert average(rows).tolist() == [[5.0, 5.0]]
    assert network.seen.take() is None  # nothing came from the copy
    assert torch.equal(network(rows), network.block(rows))


def test_it_warms_up_in_a_line_and_falls_as_half_a_cosine():
    rates = [find_rate(step, total=8, warm=4) for step in range(8)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1, 1, 0.853553, 0.5, 0.146447], abs=1e-6)


def test_without_a_warm_up_it_starts_in_full():
    assert find_rate(0, total=10, warm=0) == 1


def test_a_warm_up_longer_than_the_training_never_ends():
    assert find_rate(9, total=10, warm=20) == 0.5
