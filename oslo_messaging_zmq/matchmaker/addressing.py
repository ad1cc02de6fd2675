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

"""Who listens where: the address of one listener."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Peer:
    """One listener, as the matchmaker announces it.

    :param id: random name of this listener, 32 hexadecimal digits; its
        ASCII bytes are the ZeroMQ routing id of its sockets.
    :param exchange: name space of topics.
    :param topic: what it listens to.
    :param server: name within the topic.
    :param host: name of the machine, for people only.
    :param rpc: endpoint of calls and casts, ``tcp://host:port``.
    :param fanout: endpoint of messages to everybody.
    :param key: public CURVE key in Z85, 40 characters; '' when insecure.
    :param generation: grows with every registration in one matchmaker; 0
        before the first.
    """

    id: str
    exchange: str
    topic: str
    server: str
    host: str
    rpc: str
    fanout: str
    key: str = ''
    generation: int = 0

    @property
    def routing_id(self) -> bytes:
        """What senders call the listener's sockets."""
        return self.id.encode('ascii')
