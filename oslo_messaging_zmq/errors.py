# SPDX-License-Identifier: Apache-2.0

"""All errors that the driver raises."""


class MessagingError(Exception):
    """Base class of all errors of the messaging driver."""


class BadMessage(MessagingError):
    """A received message does not have the driver's format."""


class UnsendableMessage(MessagingError):
    """A message cannot be encoded, or is too large."""


class KeysError(MessagingError):
    """Keys or the allow-list are missing, unsafe or invalid."""


class KeyRefused(KeysError):
    """A peer's key is not on the allow-list, or is revoked."""


class ForeignName(KeyRefused):
    """A peer's key is valid, but not for the server name that the peer
    claims.
    """
