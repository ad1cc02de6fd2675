# SPDX-License-Identifier: Apache-2.0

"""Spending rates of owners for the VMs of this node.

A file or the cluster service provides them. The agent queries the service
between rounds, and reports the CPU time of the VMs. The last answer applies
until the next one, also after a restart.
"""

from collections.abc import Callable
from collections.abc import Mapping
import json
import logging
import math
import pathlib

from oslo_config import cfg

from nova_fairness import exception
from nova_fairness.agent.comms import peering as peering_module
from nova_fairness.agent.inputs import json_file
from nova_fairness.agent.inputs import nova_facts
from nova_fairness.agent.round import measurement
from nova_fairness.model import market
from nova_fairness.model import resources
from nova_fairness.model import sample as sample_model
from nova_fairness.model import wording
from nova_fairness.runtime import lookup
from nova_fairness.runtime import signatures as signatures_module
from nova_fairness.runtime import state_file
from nova_fairness.shares import tree as tree_module

LOG = logging.getLogger(__name__)

MAX_VMS = 100_000
"""Largest number of VMs with a rate."""

OPTION = '[fairness] rates'

CLUSTER = 'cluster'
"""Value of the option that selects the cluster service instead of a file."""

_TIMEOUT_S = 10.0
_ALL = 'the rates'
_CPU = resources.RESOURCES.index('cpu_time')
_MICROSECONDS = 1e6

Meters = Mapping[str, tuple[str, int]]
"""VM UUID and CPU time in microseconds, by the key of the incarnation."""

Ask = Callable[[Meters, str | None], object]
"""Reports CPU times, and queries the rates unless this version is current."""


def parse_rates(content: object) -> Mapping[str, float]:
    """Validate an object of rates by UUID.

    :raises BadArgument: if it is no such object, or a rate is unusable.
    """
    if not isinstance(content, dict) or len(content) > MAX_VMS:
        raise exception.BadArgument(
            f'expected an object with a rate for each UUID, at most {MAX_VMS}'
        )
    return {
        str(uuid): checked_rate(uuid, rate) for uuid, rate in content.items()
    }


def checked_rate(uuid: object, rate: object) -> float:
    """Return a rate as a float.

    :raises BadArgument: if it is no number in the allowed range.
    """
    usable = isinstance(rate, int | float) and not isinstance(rate, bool)
    if usable and math.isfinite(rate):  # type: ignore[arg-type]
        value = float(rate)  # type: ignore[arg-type]
        if market.SMALLEST <= value <= market.LARGEST:
            return value
    raise exception.BadArgument(
        f'rate {rate!r:.50} of {uuid!s:.50}: expected a number from'
        f' {market.SMALLEST:g} to {market.LARGEST:g}'
    )


class ClusterRates(nova_facts.QueryingCloud):
    """Adds the spending rates of VMs to the facts of a cloud.

    :param base: the facts that this class extends.
    :param query: queries the cluster service; may block, and raise anything.
    :param file: stores the last answer.
    :param query_interval_s: seconds between two queries.
    :param signatures: checks who signed an answer; ``None`` where peers have
        no keys.
    """

    def __init__(
        self,
        base: nova_facts.CloudFacts,
        query: Ask,
        file: state_file.StateFile,
        query_interval_s: float,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        super().__init__(
            base,
            lookup.Lookup('spending rates', self._update, query_interval_s),
        )
        self._ask = query
        self._file = file
        self._signatures = signatures
        self._meters: Meters = {}
        self._rates: Mapping[str, float] = file.kept(
            parse_rates, {}, 'rates count when the cluster service says them'
        )

    def rates_of(self, sample: sample_model.Sample) -> Mapping[str, float]:
        """Return the rates of the last answer; never blocks.

        :param sample: resource use of the VMs until now.
        """
        self._meters = {
            item.key: (item.instance.uuid, int(_MICROSECONDS * used))
            for item, used in zip(
                sample.incarnations,
                sample.totals[:, _CPU].tolist(),
                strict=True,
            )
            if used >= 0
        }
        self._lookup.known([_ALL])
        return self._rates

    def _update(self, _: str) -> str:
        """Report CPU times, query the rates, and return their version."""
        self._file.retry()
        known = tree_module.accounts_hash([dict(self._rates)])
        told = self._ask(self._meters, known)
        if not isinstance(told, dict):
            raise exception.BadArgument(
                'the answer of the cluster service: expected an object'
            )
        if told.get('version') == known and told.get('rates') is None:
            return known
        rates = parse_rates(told.get('rates'))
        version = tree_module.accounts_hash([dict(rates)])
        if self._signatures:
            self._signatures.check_tree(told, version)
        self._file.write(json.dumps(rates))
        self._rates = rates
        LOG.debug(
            'spending rates of %s are in force',
            wording.counted(len(rates), 'VM'),
        )
        return version


def _report_and_query(call: Callable[..., object], host: str) -> Ask:
    """Return a function that reports CPU times of VMs, then queries rates."""

    def ask(meters: Meters, known: str | None) -> object:
        had = {
            uuid: (process, used) for process, (uuid, used) in meters.items()
        }
        try:
            call('report_meters', node=host, meters=had)
        except exception.FairnessError as error:
            # The next report contains it again: meters only grow.
            LOG.info(
                'CPU time of VMs was not reported: %s; it is reported '
                'again in a later round',
                error,
            )
        return call('get_rates', servers=sorted(had), known=known)

    return ask


def connect(
    conf: cfg.ConfigOpts,
    base: nova_facts.CloudFacts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> tuple[nova_facts.CloudFacts, measurement.Rates]:
    """Create the source that ``[fairness] rates`` selects.

    :param base: facts of the cloud without rates.
    :returns: the facts with the rates, and a function that returns rates.
    :raises ConfigurationError: if there is no cluster service to query.
    """
    path = conf.fairness.rates
    if path != CLUSTER:
        nothing: Mapping[str, float] = {}
        file = json_file.watch_json(OPTION, path, parse_rates, nothing)
        return base, lambda _: file.content()
    client = peering.cluster(_TIMEOUT_S)
    made = ClusterRates(
        base,
        _report_and_query(client.call, conf.fairness.host),
        state_file.StateFile(state_path / 'rates.json'),
        # So that an answer during a round applies in the next.
        conf.fairness.interval / 2,
        signatures_module.of(conf, conf.fairness_exchange.domain),
    )
    return made, made.rates_of
