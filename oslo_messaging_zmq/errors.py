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

"""Every error that the driver raises."""


class MessagingError(Exception):
    """The messaging driver cannot do its work."""


class BadMessage(MessagingError):
    """What came over the wire is no message of the driver."""


class UnsendableMessage(MessagingError):
    """A message cannot be put on the wire, or is too large for it."""


class KeysError(MessagingError):
    """Keys or the allow-list are missing, unsafe or not as expected."""


class KeyRefused(KeysError):
    """A peer's key is not on the allow-list, or revoked."""


class ForeignName(KeyRefused):
    """A peer's key is good, and may not answer for the server it claims."""
