# SPDX-License-Identifier: Apache-2.0

"""A shared store in memory that can be away."""

from nova_fairness import exception
from nova_fairness.exchange import desired_store


class FakeStore(desired_store.SharedStore):
    """Keeps one value for all nodes of a test."""

    def __init__(self, kept=None):
        self.kept = kept
        self.is_away = False
        self.loads = 0

    def load(self):
        self.loads += 1
        if self.is_away:
            raise exception.ExchangeError('the store is away')
        return self.kept

    def change(self, change):
        self.kept = change(self.load())
        return self.kept
