# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
        wanted = change(self.load())
        if wanted.is_newer_than(self.kept):
            self.kept = wanted
        return self.kept
