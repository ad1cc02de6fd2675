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

"""Keys by which the agents of a run know each other."""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib
import shutil

from oslo_messaging_zmq.keys import admin
from oslo_messaging_zmq.keys import files

_ROLE = 'node'


def give(
    run: pathlib.Path, nodes: Iterable[str]
) -> Mapping[str, pathlib.Path]:
    """Make a key pair for each node, and the list that allows them all.

    :param run: directory of the run.
    :returns: by node the directory that its agent is told of: its own
        secret, and the list.
    :raises KeysError: if they cannot be made.
    """
    names = tuple(nodes)
    made = run / 'keys' / 'all'
    made.parent.mkdir(mode=0o755, exist_ok=True)
    for name in names:
        admin.make(made, name, _ROLE)
    return {name: _own(made, run / 'keys', name) for name in names}


def _own(made: pathlib.Path, top: pathlib.Path, name: str) -> pathlib.Path:
    # no node is called like this: a name begins with a letter or digit
    own = top / f'.{name}'
    own.mkdir(mode=0o755)
    for file in (f'{name}{files.SUFFIX}', files.LIST_NAME):
        shutil.copy(made / file, own / file)
    return own
