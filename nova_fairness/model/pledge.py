# SPDX-License-Identifier: Apache-2.0

"""Groups with one pledge for batch and cloud, and what batch says of them."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Spent:
    """Cores of a job, as the accounting of the batch system says.

    :ivar account: of the batch system.
    :ivar cores: of all its hosts, >= 0.
    :ivar begin: when it started, seconds of the epoch.
    :ivar end: when it ended; ``None`` while it runs.
    """

    account: str
    cores: float
    begin: float
    end: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Accounting:
    """Jobs in the accounting of a batch system.

    :ivar jobs: what they have or had.
    :ivar faults: sentences about jobs that are not charged.
    """

    jobs: tuple[Spent, ...] = ()
    faults: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class BatchShare:
    """An account of the batch system.

    :ivar parent: name of the account above; '' at the top.
    :ivar share: whole number that counts beside those of its siblings, >= 0.
    """

    parent: str
    share: int


@dataclasses.dataclass(frozen=True, slots=True)
class PledgeGroup:
    """A group with one pledge for both sides, as an operator wrote it down.

    :ivar account: its name in the share tree, which has its share.
    :ivar batch: name of its account in the batch system.
    """

    account: str
    batch: str
