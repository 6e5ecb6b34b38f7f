"""Input that cannot be compared is refused with a clear error."""

from typing import Any

import numpy as np
import pytest

from resight import kernels
from resight.errors import InputError, RecipeError

GOOD = np.eye(6, 8, dtype=np.float32)


def spoilt(value: float) -> Any:
    tokens = GOOD.copy()
    tokens[3] = 0
    tokens[3, 5] = value
    return tokens


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 1e-20, 1e20])
def test_useless_vectors_are_refused_with_their_row(value: float) -> None:
    with pytest.raises(InputError, match="row 3"):
        kernels.pack(spoilt(value), [0, 6])
    with pytest.raises(InputError, match="row 3"):
        kernels.pack(GOOD, [0, 6]).scores(spoilt(value))


def test_a_nan_beside_good_values_is_found() -> None:
    tokens = GOOD.copy()
    tokens[5, 0] = np.nan
    with pytest.raises(InputError, match="row 5"):
        kernels.pack(tokens, [0, 6])


@pytest.mark.parametrize(
    "offsets", [[0, 5], [1, 6], [0, 4, 3, 6], [0, 7], [], [[0, 6]], [0.0, 6.0], [-1, 6], ["0", "6"]], ids=str
)
def test_offsets_that_do_not_fit_are_refused(offsets: Any) -> None:
    with pytest.raises(InputError, match="offsets"):
        kernels.pack(GOOD, offsets)


@pytest.mark.parametrize("tokens", [GOOD[0], GOOD[None], GOOD.astype(np.int64), np.zeros((3, 0), np.float32)])
def test_tokens_that_are_no_matrix_of_floats_are_refused(tokens: Any) -> None:
    with pytest.raises(InputError, match="one token per row"):
        kernels.pack(tokens, [0, 6])


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="different lengths"):
        kernels.pack([[1.0, 2.0], [3.0]], [0, 2])


@pytest.mark.parametrize("query", [np.ones((2, 9)), np.ones((0, 8)), np.ones(7), np.ones((2, 2, 2))])
def test_a_query_of_another_shape_is_refused(query: Any) -> None:
    with pytest.raises(InputError):
        kernels.pack(GOOD, [0, 6]).scores(query)


@pytest.mark.parametrize("rows", [[2], [-1], [0.5], [[0]], [True]])
def test_rows_that_are_not_there_are_refused(rows: Any) -> None:
    with pytest.raises(InputError, match="rows"):
        kernels.pack(GOOD, [0, 3, 6]).scores(GOOD[:2], rows=rows)


def test_an_empty_list_of_rows_has_no_scores() -> None:
    assert kernels.pack(GOOD, [0, 3, 6]).scores(GOOD[:2], rows=[]).shape == (0,)


def test_kinds_and_settings_are_checked() -> None:
    with pytest.raises(InputError, match="fp32, fp16, int8, pq"):
        kernels.pack(GOOD, [0, 6], kind="int4")
    with pytest.raises(RecipeError, match="dims, rotate"):
        kernels.pack(GOOD, [0, 6], kind="int8", dim=4)
    with pytest.raises(InputError, match="dims"):
        kernels.pack(GOOD, [0, 6], kind="int8", dims=9)
    with pytest.raises(InputError, match="1, 2, 4, 8"):
        kernels.pack(GOOD, [0, 6], kind="pq", m=3)
    with pytest.raises(InputError, match="too few training tokens"):
        kernels.pack(GOOD, [0, 6], kind="pq", m=2)
    with pytest.raises(InputError, match="half precision"):
        kernels.pack(GOOD * 1e6, [0, 6], kind="fp16")
    with pytest.raises(InputError, match="half precision"):
        kernels.pack(GOOD * 1e-9, [0, 6], kind="fp16")
    with pytest.raises(InputError, match="keep"):
        kernels.pack(GOOD, [0, 6], keep="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="negative"):
        kernels.pack(GOOD, [0, 6]).top(GOOD[:2], -1)


def test_other_types_and_layouts_of_good_values_are_taken() -> None:
    expected = kernels.pack(GOOD, [0, 3, 6], kind="fp32").scores(GOOD[:2])
    swapped = GOOD.astype(np.dtype(np.float32).newbyteorder())
    for tokens in (GOOD.astype(np.float64), GOOD.astype(np.float16), np.asfortranarray(GOOD), swapped, GOOD.tolist()):
        assert np.array_equal(kernels.pack(tokens, [0, 3, 6], kind="fp32").scores(GOOD[:2]), expected)


def test_packing_and_asking_leave_the_arguments_alone() -> None:
    tokens, query = GOOD.copy(), GOOD[:2].copy()
    tokens.flags.writeable = query.flags.writeable = False
    for kind in ("fp32", "fp16", "int8"):
        kernels.pack(tokens, [0, 3, 6], kind=kind).top(query, 2)


@pytest.mark.skipif(kernels.implementation() == "numpy", reason="the compiled kernels are not built here")
def test_the_compiled_module_refuses_arrays_that_do_not_fit_together() -> None:
    from resight.kernels import dispatch

    module = dispatch.native()
    assert module is not None
    tokens, weights, out = np.ones((6, 8), np.float32), np.ones(16, np.float32), np.empty(2, np.float32)
    query, offsets = np.ones((1, 8, 16), np.float32), np.array([0, 3, 6])
    good = [query, weights, 8, tokens, offsets, None, 0, 2, out]
    module.maxsim_fp32(*good)
    for position, bad in (
        (0, query[:, :7]),
        (1, weights[:15]),
        (2, 7),
        (2, 0),
        (2, -8),
        (3, tokens[:5]),
        (4, np.array([0, 3, 7])),
        (4, np.array([0, 7, 6])),
        (4, np.array([-1, 3, 6])),
        (5, np.array([0, 2])),
        (5, np.array([0, -1])),
        (5, np.array([0])),
        (6, -1),
        (7, 3),
        (8, out[:1]),
    ):
        with pytest.raises((ValueError, BufferError)):
            module.maxsim_fp32(*[np.ascontiguousarray(bad) if position == at and not isinstance(bad, int) else
                                 bad if position == at else item for at, item in enumerate(good)])  # fmt: skip
