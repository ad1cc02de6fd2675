# SPDX-License-Identifier: Apache-2.0

"""Slurm by its own commands: nodes, jobs, accounts and shares."""

from collections.abc import Mapping
import math
import time

from oslo_log import log as logging

from nova_fairness import exception
from nova_fairness.batch import commands
from nova_fairness.batch import slurm_accounts
from nova_fairness.batch import slurm_forms
from nova_fairness.batch import slurm_json
from nova_fairness.batch import system
from nova_fairness.model import border
from nova_fairness.model import pledge

LOG = logging.getLogger(__name__)

Questions = tuple[tuple[str, ...], tuple[str, ...]]
"""Commands that list nodes, and that list jobs."""

_UNKNOWN_OPTION = 'scontrol --help'
"""Part of the error text of scontrol if it does not know an option."""

_WITHOUT_ACCOUNTS = (
    'supported accounting_storage plugin',
    'accounting storage is disabled',
)
"""Parts of the error texts of sacctmgr and sacct if there is no slurmdbd."""

_TIMES_AS_NUMBERS = ('env', 'SLURM_TIME_FORMAT=%s')


class Slurm(system.BatchSystem):
    """Slurm 22.05 to 26.05, by ``scontrol`` and ``squeue``.

    Slurm is asked which forms of JSON it writes, and the best form known here
    is used. After each fault it is asked again, because it may have another
    version then.

    Accounts are those of ``slurmdbd``, by ``sacct`` and ``sacctmgr``. To set
    shares, the user that runs the commands must be an administrator of
    accounts.

    The commands read ``SLURM_CONF``. The user that runs them must be an
    operator of Slurm and see all jobs (``PrivateData``).

    :param timeout_s: seconds in which a command must answer, > 0.
    """

    description = 'Slurm 22.05 to 26.05, by its commands.'

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._questions: Questions | None = None
        self._told: Questions | None = None

    def read_hosts(self) -> border.SideSnapshot:
        """See :meth:`.system.BatchSystem.read_hosts`."""
        questions = self._questions or self._chosen()
        if questions != self._told:
            LOG.info(
                'Slurm is read by: %s', ', '.join(map(' '.join, questions))
            )
        self._told, self._questions = questions, None
        # Nodes before jobs: nothing starts on a node that is closed in the
        # list of nodes.
        now = time.time()
        nodes, jobs = map(self._answer, questions)
        seen = slurm_json.parse_snapshot(nodes, jobs, now)
        self._questions = questions
        return seen

    def _chosen(self) -> Questions:
        """Choose the commands that this version of Slurm supports.

        :raises BatchAway: if its commands give no answer.
        :raises BatchUnreadable: if it has no form of JSON that is known here.
        """
        json, listed = '--json', self._option_output('--json=list')
        if listed is not None:
            form = slurm_forms.choose_form(
                slurm_forms.form_numbers_of_plugins(listed)
            )
            json = f'--json={slurm_forms.form_name(form)}'
        # sinfo groups nodes in all versions but 22.05.
        nodes: tuple[str, ...] = ('scontrol', '--all', json, 'show', 'nodes')
        if listed is None and self._option_output(json, '--version') is None:
            nodes = 'sinfo', json
        # Without this, squeue cuts lists of an array's tasks at 64 characters.
        whole = 'env', 'SLURM_BITSTR_LEN=0'
        # Since 24.05 the filters of squeue apply to JSON, too.
        return nodes, (*whole, 'squeue', '--all', '--states=all', json)

    def _option_output(self, *options: str) -> str | None:
        """Output of scontrol; ``None`` if it does not know the options."""
        command = 'scontrol', *options
        try:
            return commands.output(
                command, self._timeout_s, with_messages=True
            )
        except exception.BatchAway as error:
            if _UNKNOWN_OPTION in str(error):
                return None
            raise

    def _answer(self, question: tuple[str, ...]) -> str:
        return commands.output(question, self._timeout_s)

    def drain(self, host: str, reason: str) -> None:
        """See :meth:`.system.BatchSystem.drain`."""
        self._update(host, 'state=drain', f'reason={reason}')

    def undrain(self, host: str) -> None:
        """See :meth:`.system.BatchSystem.undrain`.

        ``resume`` would also bring up a node that is down.
        """
        self._update(host, 'state=undrain')

    def accounting(self, since: float, now: float) -> pledge.Accounting:
        """See :meth:`.system.BatchSystem.accounting`."""
        # List jobs before reading their ends: a job that ends in between has
        # its end in the accounts.
        known = slurm_accounts.parse_listed_jobs(self._squeue_jobs())
        ago_s = math.ceil(max(now - since, 0.0)) + 1
        columns = ','.join(slurm_accounts.SPENT)
        text = self._accounting_output(
            (
                *_TIMES_AS_NUMBERS,
                'sacct',
                '--allusers',
                '--allocations',
                '--duplicates',
                '--parsable2',
                '--noheader',
                f'--starttime=now-{ago_s}seconds',
                f'--format={columns}',
            )
        )
        return slurm_accounts.parse_accounting(text, known, since, now)

    def _squeue_jobs(self) -> str:
        columns = '|'.join(slurm_accounts.LISTED)
        return commands.output(
            (
                *_TIMES_AS_NUMBERS,
                'squeue',
                '--noheader',
                '--states=all',
                f'--format={columns}',
            ),
            self._timeout_s,
        )

    def shares(self) -> Mapping[str, pledge.BatchShare]:
        """See :meth:`.system.BatchSystem.shares`."""
        columns = ','.join(slurm_accounts.SHARES)
        text = self._accounting_output(
            (
                'sacctmgr',
                'show',
                'associations',
                '--parsable2',
                '--noheader',
                f'format={columns}',
            )
        )
        return slurm_accounts.parse_shares(text, self._cluster())

    def set_share(self, account: str, share: int) -> None:
        """See :meth:`.system.BatchSystem.set_share`."""
        command = (
            'sacctmgr',
            '--immediate',
            'modify',
            'account',
            'where',
            f'name={account}',
            f'cluster={self._cluster()}',
            'set',
            f'fairshare={share}',
        )
        try:
            commands.output(command, self._timeout_s)
        except exception.BatchAway as error:
            if 'ended with' in str(error):
                # If the account does not exist, sacctmgr ends with an error
                # but no text.
                raise exception.BatchRefused(
                    f'account {account} has not been given share {share}:'
                    f' {error}'
                ) from error
            raise

    def _accounting_output(self, command: tuple[str, ...]) -> str:
        """Output of a command of the accounting.

        :raises BatchRefused: if Slurm has no accounting.
        """
        try:
            return commands.output(command, self._timeout_s)
        except exception.BatchAway as error:
            if any(each in str(error) for each in _WITHOUT_ACCOUNTS):
                raise exception.BatchRefused(
                    f'Slurm keeps no accounts: {error}'
                ) from error
            raise

    def _cluster(self) -> str:
        """Name of the cluster of these hosts."""
        text = commands.output(('scontrol', 'show', 'config'), self._timeout_s)
        return slurm_accounts.parse_cluster_name(text)

    def _update(self, host: str, *changes: str) -> None:
        command = 'scontrol', 'update', f'nodename={host}', *changes
        try:
            commands.output(command, self._timeout_s)
        except exception.BatchAway as error:
            if 'error code' in str(error) or 'nvalid' in str(error):
                raise exception.BatchRefused(str(error)) from error
            raise
