"""Networks that are trained on known classes or pairs; the result is a file that the encoder or a reranker reads.

train_network.py            a recipe and its data → a trained network: examples, sampling, loading, loop, validation
train_head.py               your own photos → a light head over a frozen encoder
fit_pair_transformer.py     known pairs of token rows → the weights of the reranker pair_transformer (Python only)

The package is also the function `resight.train(recipe, data, out, ...)`: calling it calls `resight.tasks.train.train`.
"""

from resight.callable_package import make_callable

make_callable(__name__, "resight.tasks.train")
