# SPDX-License-Identifier: Apache-2.0

"""Results judged by what the scenarios of the package expect."""

import dataclasses

from fairness_lab.results import checks
from fairness_lab.scenario import programs
from fairness_lab.scenario import reader


def evaluate(result, **renamed):
    """Checks of a result whose scenario is one of the package's.

    :param renamed: VMs and users of the result, tuples of them, by the
        names that the scenario has.
    """

    def names(known):
        return tuple(
            new for name in known for new in renamed.get(name, (name,))
        )

    expected = [
        dataclasses.replace(item, of=names(item.of), to=names(item.to))
        for item in reader.find(result['scenario'], programs.LABORATORY).expect
    ]
    return checks.evaluate(result, expected)
