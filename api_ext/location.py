# SPDX-License-Identifier: Apache-2.0

"""Asks Nova for the host of an instance, so that only one agent is asked."""

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
    """Finds instances in every cell, by Nova's own API layer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._api: Any = None

    def __call__(self, context: Any, uuid: str) -> http_request.Owner:
        """Find an instance.

        :raises LookupError: if this context can see no such instance.
        :raises Unavailable: if Nova cannot answer.
        """
        try:
            instance = self._compute().get(context, uuid)
        except (exception.NotFound, exception.Forbidden) as error:
            raise LookupError(uuid) from error
        except Exception as error:  # of the database, of the message queue
            LOG.exception('Nova cannot say where instance %s is', uuid)
            raise faults.Unavailable(
                f'Nova cannot say where instance {uuid} is.'
            ) from error
        # During a migration its host may be the one that it has left.
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
