"""Networks that are learnt from known pairs or classes; search reads what they learn from files.

run.py          a recipe and its data → a trained network: examples, sampling, loading, loop, validation
own_folder.py   photos of one's own → a light head over a frozen encoder
local_reranker.py   known pairs of token rows → the transformer that reranks
"""
