# SPDX-License-Identifier: Apache-2.0

"""Checks of ``nova-fairness-status`` that the running service repeats.

``openstack fairness status`` shows their warnings, so that an operator need
not log in on the host of the service.
"""

import os
import threading

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_fairness.cmd import known_options
from nova_fairness.cmd import status_cloud
from nova_fairness.cmd import status_queue
from nova_fairness.cmd import status_results as results
from nova_fairness.conf import file_faults

EVERY_S = 300.0

NOVA = '/etc/nova/nova.conf'
NOVA_API = '/etc/nova/nova-api.conf'

NOT_REPEATED = frozenset(
    {
        # Each cycle checks these.
        *('Clocks', 'Cloud'),
        # Keys of agents; the service signs with its own key, which is checked.
        'Keys',
        # Agents and nova-api refuse another release when they start.
        'Nova release',
        # An operator who reads the warnings has used this interface.
        'HTTP interface',
    }
)
"""Checks that the service need not repeat."""


def _check_options(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    found = known_options.describe_unknown_options(
        file_faults.configuration_files(conf)
    )
    said = '; '.join(found)
    return results.warning(said) if said else results.success('')


def _check_exchanges(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check the exchange to which Nova sends messages, if its files are
    readable on this host.
    """
    if not all(os.access(each, os.R_OK) for each in (NOVA, NOVA_API)):
        return results.success('')
    return status_queue.check_exchanges(NOVA, NOVA_API, conf)


REPEATED: tuple[results.Named, ...] = (
    *(each for each in status_queue.CHECKS if each[0] not in NOT_REPEATED),
    ('Exchanges of Nova', _check_exchanges),
    ('Options', _check_options),
    ('Message transport', status_cloud.check_message_transport),
)


class RepeatedChecks:
    """Runs the checks repeatedly in a thread beside the cycles.

    :param conf: configuration of the service.
    :param stopped: event that ends the checks.
    :ivar name: name of the thread.
    :ivar warnings: warnings of the last run, one sentence per check.
    """

    name = 'checks'

    def __init__(self, conf: cfg.ConfigOpts, stopped: threading.Event) -> None:
        self._conf = conf
        self._stopped = stopped
        self.warnings: tuple[str, ...] = ()

    def run(self) -> None:
        """Run the checks repeatedly until stopped."""
        while not self._stopped.is_set():
            self.run_once()
            self._stopped.wait(EVERY_S)

    def run_once(self) -> None:
        """Run the checks once."""
        found = {
            name: results.run(check, self._conf) for name, check in REPEATED
        }
        self.warnings = tuple(
            f'{name}: {result.details}'
            for name, result in found.items()
            if result.code is not upgradecheck.Code.SUCCESS
        )
