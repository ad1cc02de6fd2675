# SPDX-License-Identifier: Apache-2.0

"""Checks of ``nova-fairness-status`` that the running service repeats.

``openstack fairness status`` shows what they find, so that an operator need
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

KNOWN_BETTER = frozenset(
    {
        # Each cycle looks at them.
        *('Clocks', 'Cloud'),
        # Of agents; the service signs with its own, which is looked at.
        'Keys',
        # Agents and nova-api refuse another one when they start.
        'Nova release',
        # An answer to an operator came through it.
        'HTTP interface',
    }
)
"""Checks that the service need not repeat."""


def _options(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    found = known_options.misspelt(file_faults.files_of(conf))
    said = '; '.join(found)
    return results.warning(said) if said else results.success('')


def _exchanges(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Look where Nova sends, if its files are here and may be read."""
    if not all(os.access(each, os.R_OK) for each in (NOVA, NOVA_API)):
        return results.success('')
    return status_queue.exchanges(NOVA, NOVA_API, conf)


REPEATED: tuple[results.Named, ...] = (
    *(each for each in status_queue.CHECKS if each[0] not in KNOWN_BETTER),
    ('Exchanges of Nova', _exchanges),
    ('Options', _options),
    ('Message transport', status_cloud.message_transport),
)


class RepeatedChecks:
    """Runs checks beside the cycles, time and again.

    :param conf: of the service.
    :param stopped: set by who wants this to end.

    :ivar name: of its thread.
    :ivar warnings: of the last time, a sentence for each check.
    """

    name = 'checks'

    def __init__(self, conf: cfg.ConfigOpts, stopped: threading.Event) -> None:
        self._conf = conf
        self._stopped = stopped
        self.warnings: tuple[str, ...] = ()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopped.is_set():
            self.look()
            self._stopped.wait(EVERY_S)

    def look(self) -> None:
        """Look once."""
        found = {
            name: results.run(check, self._conf) for name, check in REPEATED
        }
        self.warnings = tuple(
            f'{name}: {result.details}'
            for name, result in found.items()
            if result.code is not upgradecheck.Code.SUCCESS
        )
