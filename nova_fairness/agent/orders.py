# SPDX-License-Identifier: Apache-2.0

"""What operators order from outside: to pause, to go on, to begin again.

Calls arrive on other threads. They leave their order here, and the next
round takes it; neither waits for the other.
"""

import json
import logging
import pathlib
import threading

from nova_fairness import exception
from nova_fairness.runtime import state_file

LOG = logging.getLogger(__name__)

VERSION = 1


class Orders:
    """Keeps orders until a round takes them; a pause also over restarts.

    :param path: of the file that says whether enforcement is paused.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._reset = False
        self._paused = self._load()

    @property
    def paused(self) -> bool:
        """Whether the kernel shall be left alone."""
        return self._paused

    def pause(self, *, paused: bool) -> str:
        """Begin or end the pause; it counts from the next round on.

        :returns: why it will not outlive this agent; empty if it will.
        """
        with self._lock:
            self._paused = paused
            try:
                self._save()
            except exception.StateError as error:
                LOG.error('%s', error)
                return str(error)
        return ''

    def ask_reset(self) -> None:
        """Let the next round begin from neutral weights."""
        with self._lock:
            self._reset = True

    def take_reset(self) -> bool:
        """Tell whether to begin anew; true once for each order."""
        with self._lock:
            asked, self._reset = self._reset, False
        return asked

    def _load(self) -> bool:
        try:
            content = json.loads(self._path.read_text('utf-8'))
            if content['version'] == VERSION:
                return content['paused'] is True
            problem = f'its version is {content["version"]}'
        except FileNotFoundError:
            return False
        except (OSError, ValueError, LookupError, TypeError) as error:
            problem = str(error)
        # Whoever wrote it wanted a pause once: steering against an
        # operator's will is worse than not steering.
        LOG.error(
            '%s cannot be understood (%s): this node is paused until it is '
            'told to resume',
            self._path,
            problem,
        )
        return True

    def _save(self) -> None:
        content = json.dumps({'version': VERSION, 'paused': self._paused})
        try:
            state_file.replace(self._path, content, durable=True)
        except OSError as error:
            raise exception.StateError(
                f'cannot write {self._path}: {error.strerror}'
            ) from error
