# SPDX-License-Identifier: Apache-2.0

"""Prepares this process to talk with Nova's conductor, and nothing else."""

from collections.abc import Sequence
import itertools

from nova import config
from nova import objects
from nova.conductor import rpcapi as conductor_rpcapi
import nova.conf
import nova.db.main.api
from nova.objects import base as objects_base

PROGRAM = 'nova-fairness'


def prepare(nova_files: Sequence[str], own_files: Sequence[str] = ()) -> None:
    """Read Nova's configuration; call once, before anything else parses it.

    As in nova-compute no database is ever opened here: all that Nova's
    objects do goes through the conductor. No connection is made yet.

    :param nova_files: of Nova, as nova-compute reads them.
    :param own_files: of this program. oslo.privsep looks for its sections in
        the same process-wide configuration as Nova, which can be read only
        once. Nova's come last, so that what both set is Nova's.
    :raises oslo_config.cfg.Error: if a file or an option cannot be used.
    """
    files = itertools.chain.from_iterable(
        ('--config-file', name) for name in (*own_files, *nova_files)
    )
    config.parse_args([PROGRAM, *files], configure_db=False)
    objects.register_all()
    nova.db.main.api.DISABLE_DB_ACCESS = True
    objects_base.NovaObject.indirection_api = conductor_rpcapi.ConductorAPI()


def host() -> str:
    """Name under which Nova knows this node."""
    return str(nova.conf.CONF.host)


def report_interval_s() -> int:
    """Seconds between reports of services of this cloud; 0 is never."""
    return int(nova.conf.CONF.report_interval)
