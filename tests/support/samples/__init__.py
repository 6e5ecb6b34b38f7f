"""Small data sets in the on-disk formats of the real ones, one a module, named as in `resight.data.sets`.

A module has `write(folder, rng)` and may have `CASES`, the settings with which that folder can be loaded.
"""
