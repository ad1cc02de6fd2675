# SPDX-License-Identifier: Apache-2.0

"""Nova beside an agent: it gets reports, and is asked for facts."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_fairness import exception
from nova_fairness.model import instance
from nova_fairness.nova_service import connection
from nova_fairness.nova_service import instances
from nova_fairness.nova_service import quotas
from nova_fairness.nova_service import record
from nova_fairness.runtime import lookup

_STRANGER_S = 300.0
"""Seconds after which the owner of a domain is looked up again."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuotaSource:
    """Where the weights of users or projects come from.

    :ivar resource: one of :data:`quotas.RESOURCES`.
    :ivar entity: who is compared: ``user`` or ``project``.
    :ivar section: of Nova's configuration with the credentials.
    :ivar region: of the endpoints; empty for the only one.
    :ivar interval_s: after which they are asked for again.
    """

    resource: str
    entity: str
    section: str
    region: str
    interval_s: float


class NovaService:
    """A service of Nova on this node.

    :param service_record: its row; ``None`` if services do not report.
    :param describe: asks whose an instance is.
    :param weigh: asks for the weight of a user or project; ``None`` to leave
        the weights as they are configured.
    :param weigh_again_s: after which that is asked again.
    """

    def __init__(
        self,
        service_record: record.ServiceRecord | None,
        describe: Callable[[str], instance.Description | None],
        weigh: Callable[[str], float | None] | None = None,
        weigh_again_s: float = _STRANGER_S,
    ) -> None:
        self._record = service_record
        self._look_again: Callable[[str], None] = lambda _: None
        self._descriptions = lookup.Lookup(
            'owners of instances',
            describe,
            _STRANGER_S,
            on_found=lambda uuid: self._look_again(uuid),
        )
        self._weights = (
            None
            if weigh is None
            else lookup.Lookup('quotas', weigh, weigh_again_s)
        )

    def start(self, look_again: Callable[[str], None]) -> None:
        """Begin to report and to ask; returns at once.

        :param look_again: called with the UUID of a domain with new facts.
        """
        self._look_again = look_again
        for part in (self._record, self._descriptions, self._weights):
            if part is not None:
                part.start()

    def stop(self) -> None:
        """End all of it, in bounded time."""
        for part in (self._record, self._descriptions, self._weights):
            if part is not None:
                part.stop()

    def withdraw(self) -> bool:
        """Take this node's row out of Nova's list of services.

        :returns: whether there was one.
        """
        return self._record is not None and self._record.remove()

    def describe(self, uuid: str) -> instance.Description | None:
        """Say whose an instance is, if it is known by now; never blocks."""
        return self._descriptions.known([uuid]).get(uuid)

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Weights that are known by now; never blocks.

        :param owners: ids of users or projects.
        """
        if self._weights is None:
            return {}
        wanted = (name for name in owners if name != instance.UNOWNED)
        return self._weights.known(wanted)


def connect(
    host: str,
    nova_files: Sequence[str],
    own_files: Sequence[str] = (),
    source: QuotaSource | None = None,
) -> NovaService:
    """Make this process a service of Nova; nothing is started yet.

    Call it before anything parses the process-wide configuration.

    :param host: the agent's name for this node.
    :param nova_files: of nova-compute's configuration.
    :param own_files: of the agent's.
    :param source: of weights; ``None`` if they are only configured.
    :raises ConfigurationError: if Nova knows the node by another name.
    :raises oslo_config.cfg.Error: if a file or an option cannot be used.
    """
    connection.prepare(nova_files, own_files)
    if connection.host() != host:
        raise exception.ConfigurationError(
            f'[fairness] host = {host}, but Nova knows this node as '
            f'{connection.host()}; expected the same name'
        )
    interval_s = connection.report_interval_s()
    return NovaService(
        record.ServiceRecord(host, interval_s) if interval_s else None,
        instances.describe,
        None if source is None else _weighing(source),
        _STRANGER_S if source is None else source.interval_s,
    )


def _weighing(source: QuotaSource) -> Callable[[str], float | None]:
    weights = quotas.QuotaWeights(
        source.resource, *quotas.clients(source.section, source.region)
    )
    if source.entity == 'user':
        return weights.of_user
    return weights.of_project
