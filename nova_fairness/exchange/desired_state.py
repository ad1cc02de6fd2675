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

"""Keeps the newest desired state: in memory, in a file, in a shared store.

How to use it::

    state = desired_state.DesiredState(
        host,                                # origin of what is set here
        desired_store.FileStore(state_path / 'desired.json'),
        desired_store.RedisStore(redis.Redis(...), domain),   # or None
    )
    state.start()              # loads the file; a thread asks the store
    state.current() -> desired.Desired | None      # None: nothing ever set;
                               # the configuration counts. Never blocks.
    state.set(metric, policy, epoch=None) -> desired.Desired
                               # a new epoch (or the one that another host
                               # made, given by epoch); may take as long as
                               # one bounded look at the store.
    state.offer(seen, trusted=False)   # gossip; never blocks
    state.status() -> Mapping  # store reachable, epoch, origin, last problem
    state.stop()
"""
