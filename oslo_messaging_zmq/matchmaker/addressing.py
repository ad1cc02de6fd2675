# SPDX-License-Identifier: Apache-2.0

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
