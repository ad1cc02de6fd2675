# SPDX-License-Identifier: Apache-2.0

"""Free memory goes back to the kernel."""

import contextlib
import gc
import os
import pathlib
import weakref

from nova_fairness.runtime import heap

MIB = 2**20


def used_bytes():
    pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE')


def test_free_memory_between_kept_objects_goes_back_to_the_kernel():
    kept, freed = [], []
    for _ in range(1000):
        freed.append([bytes(1000) for _ in range(50)])
        kept.append(bytes(1000))
    freed.clear()
    before = used_bytes()
    heap.release_free_memory()
    assert used_bytes() < before - 30 * MIB
    assert len(kept) == 1000


def test_a_library_that_cannot_do_it_is_no_error(monkeypatch):
    monkeypatch.setattr(heap.ctypes, 'CDLL', lambda _name: object())
    heap.release_free_memory()


class Ring:
    """What only the collector of garbage frees."""

    def __init__(self):
        self.ring = self


def test_objects_made_uncollected_are_collected_later():
    with heap.uncollected():
        assert not gc.isenabled()
        lost = weakref.ref(Ring())
    assert gc.isenabled()
    gc.collect()
    assert lost()
    heap.collect()
    assert lost() is None
    gc.unfreeze()


def test_objects_left_by_a_failure_are_collected_as_usual():
    with contextlib.suppress(ValueError), heap.uncollected():
        lost = weakref.ref(Ring())
        raise ValueError
    assert gc.isenabled()
    gc.collect()
    assert lost() is None
