# SPDX-License-Identifier: Apache-2.0

"""Nova beside an agent: it receives reports, and answers queries for facts."""

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

_OWNER_RETRY_S = 300.0
"""Seconds until the owner of a domain is queried again."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuotaSource:
    """The source of the weights of users or projects.

    :ivar resource: one of :data:`quotas.RESOURCES`.
    :ivar entity: kind of the owners: ``user`` or ``project``.
    :ivar section: of Nova's configuration with the credentials.
    :ivar region: of the endpoints; empty for the only one.
    :ivar interval_s: seconds between two queries.
    """

    resource: str
    entity: str
    section: str
    region: str
    interval_s: float


class NovaService:
    """A service of Nova on this node.

    :param service_record: its row; ``None`` if services do not report.
    :param describe: queries the owner of an instance.
    :param query_weight: queries the weight of a user or project; ``None`` uses
        the configured weights only.
    :param weight_interval_s: seconds between two queries of a weight.
    """

    def __init__(
        self,
        service_record: record.ServiceRecord | None,
        describe: Callable[[str], instance.Description | None],
        query_weight: Callable[[str], float | None] | None = None,
        weight_interval_s: float = _OWNER_RETRY_S,
    ) -> None:
        self._record = service_record
        self._look_again: Callable[[str], None] = lambda _: None
        self._descriptions = lookup.Lookup(
            'owners of instances',
            describe,
            _OWNER_RETRY_S,
            on_found=lambda uuid: self._look_again(uuid),
        )
        self._weights = (
            None
            if query_weight is None
            else lookup.Lookup('quotas', query_weight, weight_interval_s)
        )

    def start(self, reread_vm: Callable[[str], None]) -> None:
        """Start to report and to query; returns at once.

        :param reread_vm: called with the UUID of a domain that has new facts.
        """
        self._look_again = reread_vm
        for part in (self._record, self._descriptions, self._weights):
            if part is not None:
                part.start()

    def stop(self) -> None:
        """Stop all threads, in bounded time."""
        for part in (self._record, self._descriptions, self._weights):
            if part is not None:
                part.stop()

    def withdraw(self) -> bool:
        """Delete this node's row from Nova's list of services.

        :returns: whether there was one.
        """
        return self._record is not None and self._record.remove()

    def describe(self, uuid: str) -> instance.Description | None:
        """Return the owner of an instance, if known already; never blocks."""
        return self._descriptions.known([uuid]).get(uuid)

    def weights(self, owners: Iterable[str]) -> Mapping[str, float]:
        """Return the weights that are known already; never blocks.

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
    """Create the Nova service of this process without starting it.

    Call it before any code parses the global configuration.

    :param host: the agent's name of this node.
    :param nova_files: of nova-compute's configuration.
    :param own_files: of the agent's configuration.
    :param source: of weights; ``None`` uses the configured weights only.
    :raises ConfigurationError: if Nova knows the node by another name.
    :raises oslo_config.cfg.Error: if a file or an option is unusable.
    """
    connection.configure_nova(nova_files, own_files)
    if connection.host() != host:
        raise exception.ConfigurationError(
            f'[fairness] host = {host}, but Nova knows this node as '
            f'{connection.host()}; expected the same name'
        )
    interval_s = connection.report_interval_s()
    return NovaService(
        record.ServiceRecord(host, interval_s) if interval_s else None,
        instances.describe,
        None if source is None else _weight_query(source),
        _OWNER_RETRY_S if source is None else source.interval_s,
    )


def _weight_query(source: QuotaSource) -> Callable[[str], float | None]:
    weights = quotas.QuotaWeights(
        source.resource, *quotas.create_clients(source.section, source.region)
    )
    if source.entity == 'user':
        return weights.of_user
    return weights.of_project
