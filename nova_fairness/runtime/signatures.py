# SPDX-License-Identifier: Apache-2.0

"""Signatures of choices, shares and classes of servers."""

from collections.abc import Mapping
from collections.abc import Sequence
import json
from typing import Any

from oslo_config import cfg
import oslo_messaging

from nova_fairness import exception
from nova_fairness.runtime import transport
from oslo_messaging_zmq import errors
from oslo_messaging_zmq import options
from oslo_messaging_zmq.keys import keyring

_PURPOSE = 'nova-fairness: metric and policy of a domain, 1'
"""So that what was signed for something else is no choice."""

_TREE = 'nova-fairness: share tree of a domain, 1'

PREEMPTIBLE = 'preemptible servers'
NOTICES = 'notices to guests'
"""A question of agents about the servers of their node."""

_SIGNED = ('epoch', 'metric', 'policy', 'origin', 'user_id', 'request_id')


class Signatures:
    """Signs with the own key, and judges signatures of others.

    :param keys: the own pair, and whose keys are good.
    :param domain: of all signatures; those of another are refused.
    """

    def __init__(self, keys: keyring.Keyring, domain: str) -> None:
        self._keys = keys
        self._domain = domain

    def signed(
        self,
        epoch: int,
        metric: str,
        policy: str,
        user_id: str = '',
        request_id: str = '',
    ) -> dict[str, Any]:
        """Sign a choice in the name of the own key.

        :param user_id: user who asked for it.
        :param request_id: request that asked for it.
        :returns: these, ``origin`` and ``signature``.
        :raises NotAllowed: if the own key cannot sign.
        """
        choice = {
            'epoch': epoch,
            'metric': metric,
            'policy': policy,
            'origin': self._keys.name,
            'user_id': user_id,
            'request_id': request_id,
        }
        return {
            **choice,
            'signature': self._sign(
                self._message(choice), 'metric and policy'
            ),
        }

    def signed_tree(self, version: str) -> dict[str, Any]:
        """Sign a share tree.

        :param version: that follows from all of it.
        :returns: ``origin`` and ``signature``.
        :raises NotAllowed: if the own key cannot sign.
        """
        message = self._tree_message(self._keys.name, version)
        return {
            'origin': self._keys.name,
            'signature': self._sign(message, 'shares'),
        }

    def signed_answer(
        self, what: str, asked: Sequence[str], answer: object
    ) -> dict[str, Any]:
        """Sign an answer about some servers.

        :param what: was asked, as :data:`PREEMPTIBLE`.
        :param asked: UUIDs.
        :param answer: that JSON can hold.
        :returns: ``origin`` and ``signature``.
        :raises NotAllowed: if the own key cannot sign.
        """
        message = self._answer_message(self._keys.name, what, asked, answer)
        return {
            'origin': self._keys.name,
            'signature': self._sign(message, what),
        }

    def signing_fault(self) -> str:
        """Say why others refuse the own signatures; '' if they do not."""
        return self._keys.signing_fault()

    def check(self, choice: Mapping[str, Any]) -> None:
        """Let a choice pass that a controller signed.

        :param choice: as :meth:`signed` gives it; nothing is believed.
        :raises ReportRefused: otherwise; its reason is ``unsigned`` or
            ``signature``.
        """
        named = (
            f'metric {choice.get("metric")!r:.60} and policy '
            f'{choice.get("policy")!r:.60} (epoch {choice.get("epoch")!r:.20} '
            f'of {choice.get("origin")!r:.60})'
        )
        self._check(choice, self._message(choice), named)

    def check_tree(self, told: Mapping[str, Any], version: str) -> None:
        """Let a share tree pass that a controller signed.

        :param told: with ``origin`` and ``signature``; nothing is believed.
        :param version: that follows from all of it.
        :raises ReportRefused: as :meth:`check`.
        """
        message = self._tree_message(str(told.get('origin')), version)
        self._check(told, message, f'version {version} of the share tree')

    def check_answer(
        self,
        told: Mapping[str, Any],
        what: str,
        asked: Sequence[str],
        answer: object,
    ) -> None:
        """Let an answer pass that a controller signed to this question.

        :param told: with ``origin`` and ``signature``; nothing is believed.
        :param what: as of :meth:`signed_answer`, and so are the others.
        :raises ReportRefused: as :meth:`check`.
        """
        origin = str(told.get('origin'))
        message = self._answer_message(origin, what, asked, answer)
        self._check(told, message, what)

    def _sign(self, message: bytes, what: str) -> str:
        try:
            return self._keys.sign(message)
        except errors.KeysError as error:
            raise exception.NotAllowed(
                f'{what} need a key with the role controller that can sign: '
                f'{error}'
            ) from error

    def _check(
        self, told: Mapping[str, Any], message: bytes, named: str
    ) -> None:
        signature = told.get('signature')
        if not signature:
            raise exception.ReportRefused(
                'unsigned', f'no controller signed {named}'
            )
        if not self._keys.is_signed(
            message, str(told.get('origin')), str(signature)
        ):
            raise exception.ReportRefused(
                'signature',
                f'no good key of a controller of that name signed {named}',
            )

    def _tree_message(self, origin: str, version: str) -> bytes:
        return json.dumps([_TREE, self._domain, origin, version]).encode()

    def _answer_message(
        self, origin: str, what: str, asked: Sequence[str], answer: object
    ) -> bytes:
        purpose = f'nova-fairness: {what} of a domain, 1'
        named = [purpose, self._domain, origin, sorted(asked), answer]
        return json.dumps(named, sort_keys=True).encode()

    def _message(self, choice: Mapping[str, Any]) -> bytes:
        named = [choice.get(key) for key in _SIGNED]
        return json.dumps([_PURPOSE, self._domain, *named]).encode()


def of(
    conf: cfg.ConfigOpts,
    domain: str,
    url: oslo_messaging.TransportURL | None = None,
) -> Signatures | None:
    """The signatures of a transport; ``None`` if it has no keys.

    :param url: of the transport; ``None`` for ``transport_url``.
    :raises ConfigurationError: if the keys cannot be used.
    """
    url = url or oslo_messaging.TransportURL.parse(conf)
    if not transport.is_ours(url):
        return None
    path = options.read(conf, url).keys_path
    if not path:
        return None
    try:
        return Signatures(keyring.Keyring(path), domain)
    except errors.KeysError as error:
        raise exception.ConfigurationError(str(error)) from error


def signer(conf: cfg.ConfigOpts, domain: str) -> Signatures | None:
    """The same for a service whose answers agents believe only signed.

    :raises ConfigurationError: if the keys cannot be used, or cannot sign:
        agents would refuse shares, classes, notices and rates.
    """
    found = of(conf, domain)
    fault = found.signing_fault() if found else ''
    if fault:
        raise exception.ConfigurationError(
            f'[oslo_messaging_zmq] keys_path: {fault}; agents would refuse'
            ' shares, classes, notices and rates. Make a key with'
            ' nova-fairness-keys make NAME --role controller, or rotate that'
            ' of a controller, and copy allowed.json to all hosts'
        )
    return found
