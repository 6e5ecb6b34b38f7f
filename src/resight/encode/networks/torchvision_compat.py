"""torchvision without its compiled operators, so that timm and transformers can be imported all the same.

A torchvision whose extension is missing or was made for another torch cannot be imported: it describes the shapes of
two operators that the extension would have declared. They are declared here without an implementation. Nothing that
resight runs calls them; a detector that did would be told that there is no kernel.
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
    """The declarations, kept alive by the cache; None where torchvision is whole, absent or already imported."""
    if importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except (RuntimeError, AttributeError) as error:
        if "torchvision" not in str(error):
            raise
    else:
        return None
    # What the failed import has left behind would be half a package to the next one.
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for schema in SCHEMAS:
        if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
            library.define(schema)  # type: ignore[no-untyped-call]
    return library
