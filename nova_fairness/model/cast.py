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

"""A message of Nova that waits, exactly as it came."""

from collections.abc import Mapping
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """A message that nobody waits for an answer to.

    It holds a user's token and passwords: its body and what surrounds it are
    in no text that is made of it.

    :ivar uuid: given by the sender; the same when the broker delivers twice.
    :ivar method: what it asks for.
    :ivar received_at: seconds of the epoch.
    :ivar key: routing key it was sent with.
    :ivar body: bytes as they came.
    :ivar properties: of AMQP, as they came, made of what msgpack can write.
    """

    uuid: str
    method: str
    received_at: float
    key: str = dataclasses.field(repr=False)
    body: bytes = dataclasses.field(repr=False)
    properties: Mapping[str, Any] = dataclasses.field(repr=False)
