# SPDX-License-Identifier: Apache-2.0

"""Whether a message's token would still be taken.

The token of who asked for a server travels in the message. Nova, Glance,
Cinder and Neutron refuse it once it was revoked, or its user is gone: then the
build ends in ERROR, and nothing says why.
"""

from urllib import parse

from nova_fairness import exception
from nova_fairness.cluster.openstack import clients

_RULE = 'identity:validate_token'
"""Named where this service may not ask. A token of a trust, which the one who
gave it cannot pass on any more, is refused with the same 403, without it."""

_KNOWS_RULES = {'OpenStack-Identity-Access-Rules': '1'}
"""Without it Keystone denies that there are tokens of application credentials
that are for some requests only."""


class Tokens:
    """Keystone, asked about the tokens of others.

    :param api: of Keystone.
    :param past_end: whether those that ran out are taken: with service tokens
        they are, for ``[token] allow_expired_window`` of Keystone.
    """

    def __init__(self, api: clients.Api, past_end: bool = True) -> None:
        self._api = api
        query = {'nocatalog': 1, **({'allow_expired': 1} if past_end else {})}
        self._path = f'/auth/tokens?{parse.urlencode(query)}'

    def is_taken(self, token: str) -> bool:
        """Tell whether services would take a token; '' is none to be refused.

        :raises CloudAway: if it is not known.
        :raises CloudRefused: if Keystone does not answer this service.
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
