"""An ONNX graph, ready to run.

In: a graph in memory. Out: a session; its `run` may be called from several threads at once.
"""

from typing import Any

import onnx
import onnxruntime

QUIET = 4  # only fatal errors go to stderr; the others come as exceptions


def start(model: onnx.ModelProto, threads: int) -> Any:
    """An onnxruntime session that uses `threads` threads for one run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = QUIET
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
