# SPDX-License-Identifier: Apache-2.0

"""Slurm by its own commands."""

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import slurm_json
from nova_fairness.batch import system
from nova_fairness.model import partition


class Slurm(system.BatchSystem):
    """Slurm 22.05, by ``sinfo``, ``squeue`` and ``scontrol``.

    ``SLURM_CONF`` is read by the commands. Who runs them must be an operator
    of Slurm and see the jobs of all (``PrivateData``).

    :param timeout_s: seconds in which a command must answer, > 0.
    """

    description = 'Slurm 22.05, by its commands sinfo, squeue and scontrol.'

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s

    def look(self) -> partition.Seen:
        """See :meth:`.system.BatchSystem.look`."""
        # Nodes before jobs: nothing starts on a node that was closed then.
        nodes = commands.output(('sinfo', '--json'), self._timeout_s)
        jobs = commands.output(('squeue', '--json'), self._timeout_s)
        return slurm_json.seen(nodes, jobs)

    def drain(self, host: str, reason: str) -> None:
        """See :meth:`.system.BatchSystem.drain`."""
        self._update(host, 'state=drain', f'reason={reason}')

    def undrain(self, host: str) -> None:
        """See :meth:`.system.BatchSystem.undrain`.

        ``resume`` would also bring up a node that is down.
        """
        self._update(host, 'state=undrain')

    def _update(self, host: str, *changes: str) -> None:
        command = 'scontrol', 'update', f'nodename={host}', *changes
        try:
            commands.output(command, self._timeout_s)
        except exception.BatchAway as error:
            if 'error code' in str(error) or 'nvalid' in str(error):
                raise exception.BatchRefused(str(error)) from error
            raise
