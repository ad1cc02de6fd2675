# SPDX-License-Identifier: Apache-2.0

"""Groups with one pledge for batch system and cloud, and the batch system's
accounting.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Spent:
    """Cores of a job in the accounting of the batch system.

    :ivar account: account of the batch system.
    :ivar cores: cores of the job on all its hosts, >= 0.
    :ivar begin: start of the job, seconds of the epoch.
    :ivar end: end of the job, seconds of the epoch; ``None`` while it runs.
    """

    account: str
    cores: float
    begin: float
    end: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Accounting:
    """Jobs in the accounting of a batch system.

    :ivar jobs: cores and times of the jobs.
    :ivar faults: sentences about jobs that are not charged.
    """

    jobs: tuple[Spent, ...] = ()
    faults: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class BatchShare:
    """An account of the batch system.

    :ivar parent: name of the account above; '' at the top.
    :ivar share: share relative to the shares of its siblings, an integer >= 0.
    """

    parent: str
    share: int


@dataclasses.dataclass(frozen=True, slots=True)
class PledgeGroup:
    """A group with one pledge for both systems, as configured by an operator.

    :ivar account: name of its account in the share tree, which defines its
        share.
    :ivar batch: name of its account in the batch system.
    """

    account: str
    batch: str
