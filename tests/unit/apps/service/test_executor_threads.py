"""How many threads BLAS may take, as its own libraries tell it."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from resight.apps.service.executor import BlasThreads, set_blas_threads


def count_threads() -> set[int]:
    """As the libraries say, which may not all accept more than there are cores."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = max(count_threads())
    blas = ThreadpoolController().select(user_api="blas")
    set_blas_threads(blas, 1)
    yield
    set_blas_threads(blas, before)


def test_a_search_alone_has_all_threads_and_several_share_them() -> None:
    lending = BlasThreads(1, 2)
    assert count_threads() == {1}
    with lending.work():
        assert count_threads() == {2}
        with lending.work():
            assert count_threads() == {1}
        assert count_threads() == {2}
    assert count_threads() == {1}


def test_what_is_lent_comes_back_after_an_error_and_from_any_thread() -> None:
    lending = BlasThreads(1, 2)

    def fail() -> None:
        with pytest.raises(ZeroDivisionError), lending.work():
            _ = 1 // 0

    threads = [threading.Thread(target=fail) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count_threads() == {1}
