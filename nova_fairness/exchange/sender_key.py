# SPDX-License-Identifier: Apache-2.0

"""Who sent a message, as far as the transport knows it by a key."""

from typing import Any
from typing import NamedTuple

from nova_fairness import exception
from nova_fairness.exchange import fields
from nova_fairness.exchange import limits as bounds

PEER = 'zmq_peer'
"""Where a transport that knows keys says who sent a message."""


class Key(NamedTuple):
    """What the transport knows of a sender; empty if it knows no keys."""

    name: str = ''
    role: str = ''

    @classmethod
    def of(cls, context: Any, limits: bounds.Bounds) -> 'Key':
        """Read what the transport wrote into a context.

        :raises ReportRefused: if that cannot be.
        """
        if not isinstance(context, dict) or context.get(PEER) is None:
            return NOBODY
        given = fields.Fields(context[PEER], PEER)
        if given.is_set('insecure'):
            return NOBODY
        return cls(
            given.text('name', limits.max_text),
            given.text('role', limits.max_text),
        )

    def check_role(self) -> None:
        """Let only nodes report.

        :raises ReportRefused: if it is another key's message.
        """
        if self.name and self.role != 'node':
            raise exception.ReportRefused(
                'role',
                f'the key of {self.name} has the role {self.role}; '
                'expected node',
            )

    def check_host(self, host: str) -> None:
        """Let everybody report on itself only.

        :raises ReportRefused: if it is another host's report.
        """
        if self.name and host != self.name:
            raise exception.ReportRefused(
                'identity',
                f'the key of {self.name} sent a report of {host}; expected '
                'its own',
            )


NOBODY = Key()
