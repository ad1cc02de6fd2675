# SPDX-License-Identifier: Apache-2.0

"""Every error that the driver raises."""


class MessagingError(Exception):
    """The messaging driver cannot do its work."""


class BadMessage(MessagingError):
    """A received message is not of the driver's format."""


class UnsendableMessage(MessagingError):
    """A message has no form in bytes, or is too large."""


class KeysError(MessagingError):
    """Keys or the allow-list are missing, unsafe or not as expected."""


class KeyRefused(KeysError):
    """A peer's key is not on the allow-list, or revoked."""


class ForeignName(KeyRefused):
    """A peer's key is good, and may not answer for the server it claims."""
