# SPDX-License-Identifier: Apache-2.0

"""Base classes of pages and of panels in the menu."""

import abc
from collections.abc import Callable
from collections.abc import Mapping
import functools
from typing import Any
from typing import ClassVar

from django import shortcuts
from django.core import cache
from django.utils.translation import gettext as _
import horizon
from horizon import messages
from horizon import views

from fairness_dashboard import connection
from fairness_dashboard import directory
from fairness_dashboard import parts

Actions = Mapping[str, Callable[[Any, Any], Any]]
"""Calls by the name of the button; they get the interface and the form. A text
that one gives is shown."""

_SEEN_S = 86400
_UNSEEN_S = 60


class NodePanel(horizon.Panel):  # type: ignore[misc]  # no types
    """A panel that needs only agents."""

    permissions = ('openstack.services.compute',)


class ClusterPanel(NodePanel):
    """A panel that needs the cluster service.

    The menu shows it for a day after the last answer of the service. So a
    short outage does not hide it: the page then reports the outage.
    """

    def allowed(self, context: Mapping[str, Any]) -> bool:
        """Return whether the menu shows the panel to the user."""
        return super().allowed(context) and has_queue(context['request'])


def has_queue(request: Any) -> bool:
    """Return whether the region of the user has the cluster service."""
    key = f'fairness-queue-{request.user.services_region}'
    known = cache.cache.get(key)
    if known is None:
        api = connection.fairness_client(request)
        found = parts.read(lambda: next(api.requests(limit=1), None))
        known = found.status not in (0, parts.AWAY, parts.MISSING)
        cache.cache.set(key, known, _SEEN_S if known else _UNSEEN_S)
    return bool(known)


class FairnessView(views.HorizonTemplateView, abc.ABC):  # type: ignore[misc]
    """A page.

    Subclasses define ``template_name``, ``page_title``, the values of the
    template (:meth:`content`) and the actions of its forms (:attr:`actions`).
    """

    actions: ClassVar[Actions] = {}

    @abc.abstractmethod
    def content(self, **names: str) -> dict[str, Any]:
        """Return the values of the template.

        :param names: parts of the URL.
        """

    @property
    def api(self) -> Any:
        """Client of the fairness API with the token of the user."""
        return connection.fairness_client(self.request)

    @functools.cached_property
    def directory(self) -> directory.NameDirectory:
        """Names that the user may list, by ID."""
        return directory.NameDirectory(connection.UserLists(self.request))

    def get(self, request: Any, *args: Any, **names: str) -> Any:
        """Render the page."""
        content = self.content(**names)
        context = self.get_context_data(**names, **content)
        # The next page is of the same list.
        query = request.GET.copy()
        query['marker'] = content.get('more', '')
        return self.render_to_response({**context, 'next': query.urlencode()})

    def post(self, request: Any, *args: Any, **names: str) -> Any:
        """Execute the action of a form, and show its result."""
        form = {**request.POST.dict(), **names}
        action = self.actions.get(form.get('order', ''))
        if action is None:
            messages.error(request, _('There is no such action.'))
        else:
            self._execute(lambda: action(self.api, form))
        return shortcuts.redirect(request.get_full_path())

    def _execute(self, call: Callable[[], Any]) -> None:
        try:
            found = parts.read(call)
        except ValueError as error:
            messages.error(self.request, str(error))
            return
        if found.status == parts.FORBIDDEN:
            words = _('Your roles do not allow you to do this.')
            messages.error(self.request, words)
        elif found.problem:
            messages.error(self.request, found.problem)
        else:
            told = found.content
            is_text = isinstance(told, str)
            messages.success(self.request, told if is_text else _('Done.'))
