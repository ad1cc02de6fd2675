# SPDX-License-Identifier: Apache-2.0

"""What other hands changed."""

from nova_fairness.model import allocation


def drift(
    expected: allocation.Allocation, present: allocation.Allocation
) -> allocation.Allocation:
    """Find what other hands changed since we wrote it.

    :param expected: what was written last, kernel units by knob.
    :param present: what is there now; knobs that it lacks vanished.
    :returns: the present value of each knob that differs.
    """
    return {
        knob: present[knob]
        for knob, value in expected.items()
        if present.get(knob, value) != value
    }
