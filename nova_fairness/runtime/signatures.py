# SPDX-License-Identifier: Apache-2.0

"""Signatures of metric and policy, of share trees, and of answers on
servers.
"""

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
"""Text in the signed data that separates choices from other signed data."""

_TREE = 'nova-fairness: share tree of a domain, 1'

PREEMPTIBLE = 'preemptible servers'
"""Name of the agents' question for preemptible servers on their node."""
NOTICES = 'notices to guests'
"""Name of the agents' question for notices of the servers on their node."""

_SIGNED_FIELDS = (
    'epoch',
    'metric',
    'policy',
    'origin',
    'user_id',
    'request_id',
)


class Signatures:
    """Signs with the own key, and checks signatures of others.

    :param keys: the own key pair, and the public keys of trusted peers.
    :param domain: part of all signed data; signatures of other domains are
        refused.
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
        """Sign a choice of metric and policy with the own key.

        :param user_id: user who requested it.
        :param request_id: request that caused it.
        :returns: the arguments, ``origin`` and ``signature``.
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
                self._choice_message(choice), 'metric and policy'
            ),
        }

    def signed_tree(self, version: str) -> dict[str, Any]:
        """Sign a share tree.

        :param version: computed from the whole tree.
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

        :param what: name of the question, such as :data:`PREEMPTIBLE`.
        :param asked: UUIDs of the servers in the question.
        :param answer: of JSON types.
        :returns: ``origin`` and ``signature``.
        :raises NotAllowed: if the own key cannot sign.
        """
        message = self._answer_message(self._keys.name, what, asked, answer)
        return {
            'origin': self._keys.name,
            'signature': self._sign(message, what),
        }

    def signing_fault(self) -> str:
        """Return why others refuse the own signatures; empty if they
        accept them.
        """
        return self._keys.signing_fault()

    def check(self, choice: Mapping[str, Any]) -> None:
        """Check that a controller signed a choice.

        :param choice: as :meth:`signed` returns it; untrusted.
        :raises ReportRefused: otherwise; its reason is ``unsigned`` or
            ``signature``.
        """
        named = (
            f'metric {choice.get("metric")!r:.60} and policy '
            f'{choice.get("policy")!r:.60} (epoch {choice.get("epoch")!r:.20} '
            f'of {choice.get("origin")!r:.60})'
        )
        self._check_signature(choice, self._choice_message(choice), named)

    def check_tree(self, told: Mapping[str, Any], version: str) -> None:
        """Check that a controller signed a share tree.

        :param told: with ``origin`` and ``signature``; untrusted.
        :param version: computed from the whole tree.
        :raises ReportRefused: as :meth:`check`.
        """
        message = self._tree_message(str(told.get('origin')), version)
        self._check_signature(
            told, message, f'version {version} of the share tree'
        )

    def check_answer(
        self,
        told: Mapping[str, Any],
        what: str,
        asked: Sequence[str],
        answer: object,
    ) -> None:
        """Check that a controller signed an answer to this question.

        :param told: with ``origin`` and ``signature``; untrusted.
        :param what: as for :meth:`signed_answer`, like the other parameters.
        :raises ReportRefused: as :meth:`check`.
        """
        origin = str(told.get('origin'))
        message = self._answer_message(origin, what, asked, answer)
        self._check_signature(told, message, what)

    def _sign(self, message: bytes, what: str) -> str:
        try:
            return self._keys.sign(message)
        except errors.KeysError as error:
            raise exception.NotAllowed(
                f'{what} need a key with the role controller that can sign: '
                f'{error}'
            ) from error

    def _check_signature(
        self, told: Mapping[str, Any], message: bytes, named: str
    ) -> None:
        signature = told.get('signature')
        if not signature:
            raise exception.ReportRefused(
                'unsigned', f'{named}: no controller signed it'
            )
        if not self._keys.has_valid_signature(
            message, str(told.get('origin')), str(signature)
        ):
            raise exception.ReportRefused(
                'signature',
                f'{named}: the signature is not of a trusted controller of '
                'that name',
            )

    def _tree_message(self, origin: str, version: str) -> bytes:
        return json.dumps([_TREE, self._domain, origin, version]).encode()

    def _answer_message(
        self, origin: str, what: str, asked: Sequence[str], answer: object
    ) -> bytes:
        purpose = f'nova-fairness: {what} of a domain, 1'
        named = [purpose, self._domain, origin, sorted(asked), answer]
        return json.dumps(named, sort_keys=True).encode()

    def _choice_message(self, choice: Mapping[str, Any]) -> bytes:
        named = [choice.get(key) for key in _SIGNED_FIELDS]
        return json.dumps([_PURPOSE, self._domain, *named]).encode()


def of(
    conf: cfg.ConfigOpts,
    domain: str,
    url: oslo_messaging.TransportURL | None = None,
) -> Signatures | None:
    """Return the signatures of a transport; ``None`` if it has no keys.

    :param url: of the transport; ``None`` for ``transport_url``.
    :raises ConfigurationError: if the keys are unusable.
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
    """Return the signatures of a service that must sign its answers.

    :raises ConfigurationError: if the keys are unusable, or cannot sign:
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
