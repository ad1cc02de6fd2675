# SPDX-License-Identifier: Apache-2.0

"""What is read of a VM besides its CPU time: disk, network, lateness."""

from collections.abc import Mapping
from collections.abc import Sequence

from fairness_lab.results import counter
from fairness_lab.results import recording


class More:
    """Answers questions about :data:`recording.MORE_COLUMNS`.

    :param rows: readings by VM, in the order of time.
    """

    def __init__(
        self, rows: Mapping[str, Sequence[recording.Reading]]
    ) -> None:
        self._rows = rows
        self._counters: dict[tuple[str, str], counter.Counter] = {}

    def grown(self, vm: str, column: str, from_s: float, to_s: float) -> float:
        """By how much a counter of a VM has grown."""
        if (vm, column) not in self._counters:
            self._counters[vm, column] = counter.Counter(
                (row.t_s, row.more[column])
                for row in self._rows.get(vm, ())
                if column in row.more
            )
        return self._counters[vm, column].over(from_s, to_s)

    def last(self, vm: str, column: str) -> float | None:
        """Last value of a column of a VM."""
        found = [
            row.more[column]
            for row in self._rows.get(vm, ())
            if column in row.more
        ]
        return found[-1] if found else None
