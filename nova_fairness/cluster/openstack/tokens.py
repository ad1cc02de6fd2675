# SPDX-License-Identifier: Apache-2.0

"""Checks whether services would still accept the token of a message.

A message contains the token of the user who requested the server. Nova,
Glance, Cinder and Neutron refuse the token once it is revoked, or its user is
deleted: then the build ends in ERROR without an explanation.
"""

from urllib import parse

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients

_RULE = 'identity:validate_token'
"""Part of the error message if this service may not validate tokens. A token
of a trust whose trustor lost the role is refused with the same code 403, but
without this text.
"""

_KNOWS_RULES = {'OpenStack-Identity-Access-Rules': '1'}
"""Header without which Keystone hides tokens of application credentials with
access rules.
"""


class TokenValidator:
    """Validates tokens of users with Keystone.

    :param api: API of Keystone.
    :param accept_expired: whether expired tokens count as valid. Services with
        service tokens accept them for ``[token] allow_expired_window`` of
        Keystone.
    """

    def __init__(self, api: clients.Api, accept_expired: bool = True) -> None:
        self._api = api
        query = {
            'nocatalog': 1,
            **({'allow_expired': 1} if accept_expired else {}),
        }
        self._path = f'/auth/tokens?{parse.urlencode(query)}'

    def is_accepted(self, token: str) -> bool:
        """Return whether services would accept a token; '' counts as accepted.

        :raises CloudAway: if Keystone does not answer.
        :raises CloudRefused: if Keystone refuses the call of this service.
        """
        if not token:
            return True
        asked = {'X-Subject-Token': token, **_KNOWS_RULES}
        try:
            return self._api.get(self._path, secret=asked) is not None
        except exception.CloudRefused as error:
            if not error.said or _RULE in error.said:
                raise
            return False
