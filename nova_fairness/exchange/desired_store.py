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

"""Where desired state outlives an agent: a file, and Redis.

Signatures::

    FileStore(path: pathlib.Path)
        .load() -> Desired | None        # garbage: named, None
        .save(Desired) -> None           # atomic; raises StateError
    RedisStore(client: redis.Redis, domain: str, prefix='nova-fairness')
        .load() -> Desired | None        # raises ExchangeError: Redis away
        .keep(Desired) -> Desired        # compare-and-set; gives the winner
        .advance(metric, policy, origin, known) -> Desired   # a new epoch
"""
