# SPDX-License-Identifier: Apache-2.0

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
