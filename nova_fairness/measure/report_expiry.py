# SPDX-License-Identifier: Apache-2.0

"""For how long what a silent node said still counts.

A node whose reports get lost now and then is silent by chance, and one whose
reports always came is not. So it is asked how likely a silence is, as accrual
failure detectors do (Hayashibara et al., "The phi accrual failure detector",
2004): where a part *p* of the reports was missing, *k* in a row are missing by
chance with the probability of *p* to the power of *k*.
"""

import numpy as np

from nova_fairness.model import usage as usage_model

MEMORY = 0.05
"""Weight of one report in the part that was missing."""

UNLIKELY = 1e-6
"""A silence that is less likely is none of chance."""

MOST = 10.0
"""Intervals that are waited at most, whatever was missing before."""

SHORT = 3.0
"""A silence of so many intervals may be chance in any case."""


def heard(
    part: usage_model.Scalars, gap: usage_model.Scalars
) -> usage_model.Scalars:
    """Count reports that came.

    A silence too long for chance says nothing about chance.

    :param part: (k,) of each node's reports that was missing so far, 0..1.
    :param gap: (k,) intervals since the report before, >= 0.
    :returns: (k,) the part that is missing now.
    """
    chance = gap <= np.maximum(SHORT, patience(part))
    missing = np.where(chance, np.rint(gap) - 1.0, 0.0).clip(0.0)
    there = (1.0 - part) * (1.0 - MEMORY) ** missing
    return np.asarray((1.0 - there) * (1.0 - MEMORY))


def patience(part: usage_model.Scalars) -> usage_model.Scalars:
    """The intervals of silence that may be chance.

    :param part: (k,) of each node's reports that was missing, 0..1.
    :returns: (k,) at most :data:`MOST`, next to 0 where none was missing.
    """
    known = np.clip(part, 1e-12, 1.0 - 1e-12)
    return np.asarray(np.minimum(np.log(UNLIKELY) / np.log(known), MOST))
