"""Makes torchvision importable without its compiled operators, because timm and transformers import it.

A torchvision whose extension is missing, or was built for another torch, fails on import: it describes the shapes of
two operators that the extension would have declared. `declare_missing` declares them without an implementation. resight
runs nothing that calls them; a detector that did would get torch's error that there is no kernel.
"""

import functools
import importlib.util
import sys

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


@functools.cache
def declare_missing() -> torch.library.Library | None:
    """The declarations, which the cache keeps alive; None where torchvision works, is absent or is imported already."""
    if importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except (RuntimeError, AttributeError) as error:
        if "torchvision" not in str(error):
            raise
    else:
        return None
    # The next import must not find the half-imported package.
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for schema in SCHEMAS:
        if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
            library.define(schema)  # type: ignore[no-untyped-call]
    return library
