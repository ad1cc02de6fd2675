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
