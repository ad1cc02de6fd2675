# SPDX-License-Identifier: Apache-2.0

"""Look-up of instances in Nova, so that only the agent of their host is
queried.
"""

import logging
import threading
from typing import Any

from nova import exception
from nova.compute import api
from nova.compute import task_states

from api_ext import faults
from api_ext import http_request

LOG = logging.getLogger(__name__)


class Location:
    """Finds instances in every cell, with Nova's own API layer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._api: Any = None

    def __call__(self, context: Any, uuid: str) -> http_request.Owner:
        """Return owner, host and state of an instance.

        :raises LookupError: if it does not exist or is not visible to this
            context.
        :raises Unavailable: if Nova cannot answer.
        """
        try:
            instance = self._compute().get(context, uuid)
        except (exception.NotFound, exception.Forbidden) as error:
            raise LookupError(uuid) from error
        except Exception as error:  # of the database, of the message queue
            LOG.exception('instance %s: Nova failed to find its host', uuid)
            raise faults.Unavailable(
                f'Instance {uuid}: Nova failed to find its host; the log of '
                'nova-api has the cause.'
            ) from error
        # During a migration Nova may still report the source host.
        moves = instance.task_state == task_states.MIGRATING
        return http_request.Owner(
            host=None if moves else str(instance.host or ''),
            user_id=str(instance.user_id),
            project_id=str(instance.project_id),
            name=str(instance.display_name or ''),
            state=str(instance.vm_state or ''),
        )

    def _compute(self) -> Any:
        with self._lock:
            if self._api is None:
                self._api = api.API()
            return self._api
