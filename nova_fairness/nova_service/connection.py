# SPDX-License-Identifier: Apache-2.0

"""Configures this process for calls to Nova's conductor only."""

from collections.abc import Sequence
import itertools

from nova import config
from nova import objects
from nova.conductor import rpcapi as conductor_rpcapi
import nova.conf
import nova.db.main.api
from nova.objects import base as objects_base

PROGRAM = 'nova-fairness'


def configure_nova(
    nova_files: Sequence[str], own_files: Sequence[str] = ()
) -> None:
    """Read Nova's configuration; call once, before any other code parses it.

    As in nova-compute, no database is opened: all calls of Nova's objects go
    through the conductor. No connection is opened yet.

    :param nova_files: of Nova, as nova-compute reads them.
    :param own_files: of this program. oslo.privsep and Nova share the global
        configuration, which can be read only once. Nova's files are last, so
        that Nova's values have precedence.
    :raises oslo_config.cfg.Error: if a file or an option is unusable.
    """
    files = itertools.chain.from_iterable(
        ('--config-file', name) for name in (*own_files, *nova_files)
    )
    config.parse_args([PROGRAM, *files], configure_db=False)
    objects.register_all()
    nova.db.main.api.DISABLE_DB_ACCESS = True
    objects_base.NovaObject.indirection_api = conductor_rpcapi.ConductorAPI()


def host() -> str:
    """Return Nova's name of this node."""
    return str(nova.conf.CONF.host)


def report_interval_s() -> int:
    """Return the seconds between two reports of a Nova service; 0 means
    never.
    """
    return int(nova.conf.CONF.report_interval)
