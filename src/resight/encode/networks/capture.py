"""What passes through a module while the network around it runs.

In: a module and whether its input or its output is wanted. Out: the tensor of the latest run in this thread. It is how
attention is read where a network does not give it: the block's softmax ends in a module or a value of its own.
"""

import threading
from typing import Any, Literal

import torch


class Capture:
    def __init__(self, module: torch.nn.Module, side: Literal["input", "output"]) -> None:
        self._seen = threading.local()
        if side == "input":
            module.register_forward_pre_hook(self._keep_input)
        else:
            module.register_forward_hook(self._keep_output)

    def __deepcopy__(self, _memo: dict[int, Any]) -> "Capture":
        """For the copy of a network, whose hooks lead to it: it has seen nothing yet."""
        copied = object.__new__(type(self))
        copied._seen = threading.local()
        return copied

    def take(self) -> Any:
        """The value of this thread's latest run, once."""
        value = getattr(self._seen, "value", None)
        self._seen.value = None
        return value

    def _keep_input(self, _module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        self._seen.value = inputs[0]

    def _keep_output(self, _module: torch.nn.Module, _inputs: tuple[Any, ...], output: Any) -> None:
        self._seen.value = output
