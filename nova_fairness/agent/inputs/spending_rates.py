# SPDX-License-Identifier: Apache-2.0

"""Spending of owners for the VMs of this node.

A file or the cluster service says it. The agent asks the service beside the
rounds, and reports how much CPU time VMs have had. The last answer counts
until a new one comes, also after a restart, however long the service is away.
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

MOST = 100_000
"""Largest number of VMs with a rate."""

OPTION = '[fairness] rates'

CLUSTER = 'cluster'
"""In the place of a path: the cluster service says the rates."""

_TIMEOUT_S = 10.0
_ALL = 'the rates'
_CPU = resources.RESOURCES.index('cpu_time')
_MICROSECONDS = 1e6

Meters = Mapping[str, tuple[str, int]]
"""UUID of the VM, and microseconds of CPU, by process."""

Ask = Callable[[Meters, str | None], object]
"""Says what VMs had, and asks for rates if they are not of this version."""


def read(content: object) -> Mapping[str, float]:
    """Check an object of rates by UUID.

    :raises BadArgument: if it is none, or a rate is not one.
    """
    if not isinstance(content, dict) or len(content) > MOST:
        raise exception.BadArgument(
            f'expected an object with a rate for each UUID, at most {MOST}'
        )
    return {str(uuid): checked(uuid, rate) for uuid, rate in content.items()}


def checked(uuid: object, rate: object) -> float:
    """One rate.

    :raises BadArgument: if it is none.
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


class ClusterRates(nova_facts.AroundLookup):
    """A cloud whose service says what is spent for VMs.

    :param others: the cloud that knows all else.
    :param ask: asks the cluster service; may block, and raise anything.
    :param file: what it said last.
    :param again_s: after which it is asked again, in seconds.
    :param signatures: that judge who said it; ``None`` where peers have no
        keys.
    """

    def __init__(
        self,
        others: nova_facts.CloudFacts,
        ask: Ask,
        file: state_file.StateFile,
        again_s: float,
        signatures: signatures_module.Signatures | None = None,
    ) -> None:
        super().__init__(
            others, lookup.Lookup('spending rates', self._look, again_s)
        )
        self._ask = ask
        self._file = file
        self._signatures = signatures
        self._meters: Meters = {}
        self._rates: Mapping[str, float] = file.kept(
            read, {}, 'rates count when the cluster service says them'
        )

    def of(self, sample: sample_model.Sample) -> Mapping[str, float]:
        """Rates by what the service said last; never blocks.

        :param sample: what VMs have had until now.
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

    def _look(self, _: str) -> str:
        """Take over what is new; the version that counts."""
        self._file.retry()
        known = tree_module.version([dict(self._rates)])
        told = self._ask(self._meters, known)
        if not isinstance(told, dict):
            raise exception.BadArgument('the answer is no object')
        if told.get('version') == known and told.get('rates') is None:
            return known
        rates = read(told.get('rates'))
        version = tree_module.version([dict(rates)])
        if self._signatures:
            self._signatures.check_tree(told, version)
        self._file.write(json.dumps(rates))
        self._rates = rates
        LOG.debug('Rates are known of %s', wording.counted(len(rates), 'VM'))
        return version


def _asking(call: Callable[..., object], host: str) -> Ask:
    """Make a function that reports CPU times of VMs, then asks for rates."""

    def ask(meters: Meters, known: str | None) -> object:
        had = {
            uuid: (process, used) for process, (uuid, used) in meters.items()
        }
        try:
            call('report_meters', node=host, meters=had)
        except exception.FairnessError as error:
            # It is said again with the next one: meters only grow.
            LOG.info(
                'The use of VMs is not charged yet: %s; it is charged '
                'in a later round',
                error,
            )
        return call('get_rates', servers=sorted(had), known=known)

    return ask


def connect(
    conf: cfg.ConfigOpts,
    others: nova_facts.CloudFacts,
    peering: peering_module.Peering,
    state_path: pathlib.Path,
) -> tuple[nova_facts.CloudFacts, measurement.Rates]:
    """The cloud with what ``[fairness] rates`` says, and the rates.

    :param others: the cloud without it.
    :raises ConfigurationError: if there is no cluster service to ask.
    """
    path = conf.fairness.rates
    if path != CLUSTER:
        nothing: Mapping[str, float] = {}
        file = json_file.watched(OPTION, path, read, nothing)
        return others, lambda _: file.content()
    client = peering.cluster(_TIMEOUT_S)
    made = ClusterRates(
        others,
        _asking(client.call, conf.fairness.host),
        state_file.StateFile(state_path / 'rates.json'),
        # So that what is told in a round counts in the next.
        conf.fairness.interval / 2,
        signatures_module.of(conf, conf.fairness_exchange.domain),
    )
    return made, made.of
