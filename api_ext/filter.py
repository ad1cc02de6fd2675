# SPDX-License-Identifier: Apache-2.0

"""Filter for ``api-paste.ini``; the only module besides ``location`` that
imports Nova.
"""

from typing import Any

# Nova 34's wsgi uses it without importing it.
import webob.dec  # isort: skip

from nova.api import wsgi
import nova.conf
import webob

from api_ext import application
from api_ext import assembly
from api_ext import location


class FairnessFilter(wsgi.Middleware):  # type: ignore[misc]  # no types
    """WSGI filter that answers requests below ``/fairness`` and passes all
    others to Nova.

    :param application: next application of the pipeline.
    """

    def __init__(self, application: Any) -> None:
        super().__init__(application)
        self._own = assembly.build(nova.conf.CONF, location.Location())

    @webob.dec.wsgify  # type: ignore[untyped-decorator]  # no types
    def __call__(self, request: webob.Request) -> Any:
        """Return the response to a request, or the application that answers
        it.
        """
        if not application.is_fairness_request(request.environ):
            return self.application
        return self._own.answer(request, request.environ.get('nova.context'))
