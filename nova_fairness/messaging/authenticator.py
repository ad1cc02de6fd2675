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

"""Who may talk: answers ZeroMQ's question for every CURVE handshake.

A driver makes one :class:`Access` and asks it for everything::

    keyring = keyring.FileKeyring(path)        # KeysError says what is wrong
    access = authenticator.start(context, keyring, domain)
    access.as_server(socket)                   # before bind; owner's thread
    access.as_client(socket, server_key)       # before each connect; raises
                                               # KeyRefused for a bad key
    entry = access.peer(frame.get('User-Id'))  # Entry(name, role) or None:
                                               # ask for every message, drop
                                               # it when None
    access.on_withdrawn(callback)              # callback(server_key): runs in
                                               # the native thread; disconnect
                                               # from every peer of that key
    access.statistics()                        # mapping of plain ints
    access.stop()                              # when the sockets are closed

All drivers of one process and context share one native thread. Sessions of
revoked keys are closed by it (:mod:`nova_fairness.messaging.sessions`); a
driver has nothing to report about its messages.
"""
