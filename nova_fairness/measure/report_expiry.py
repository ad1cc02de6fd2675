# SPDX-License-Identifier: Apache-2.0

"""For how long the last report of a silent node counts.

A node whose reports often get lost can be silent by chance; a node whose
reports always arrived cannot. So the probability of a silence is computed, as
in accrual failure detectors (Hayashibara et al., "The phi accrual failure
detector", 2004): if a part *p* of the reports was missing, *k* in a row are
missing by chance with probability *p* to the power of *k*.
"""

import numpy as np

from nova_fairness.model import usage as usage_model

REPORT_WEIGHT = 0.05
"""Weight of one report in the missing part."""

MIN_PROBABILITY = 1e-6
"""Smallest probability of a silence that counts as chance."""

MAX_INTERVALS = 10.0
"""Longest silence that counts as chance, in intervals."""

ALWAYS_ALLOWED = 3.0
"""Number of silent intervals that always count as chance."""


def updated_missing_part(
    missing_part: usage_model.Scalars, gap: usage_model.Scalars
) -> usage_model.Scalars:
    """Return the missing part of each node's reports after a new report.

    A silence too long for chance does not count as missing reports.

    :param missing_part: (k,) of each node's reports before, 0..1.
    :param gap: (k,) intervals since the last report, >= 0.
    :returns: (k,) in 0..1.
    """
    chance = gap <= np.maximum(ALWAYS_ALLOWED, allowed_silence(missing_part))
    missing = np.where(chance, np.rint(gap) - 1.0, 0.0).clip(0.0)
    there = (1.0 - missing_part) * (1.0 - REPORT_WEIGHT) ** missing
    return np.asarray((1.0 - there) * (1.0 - REPORT_WEIGHT))


def allowed_silence(missing_part: usage_model.Scalars) -> usage_model.Scalars:
    """Return the number of silent intervals that may be chance.

    :param missing_part: (k,) of each node's reports, 0..1.
    :returns: (k,) at most :data:`MAX_INTERVALS`, near 0 where no report was
        missing.
    """
    known = np.clip(missing_part, 1e-12, 1.0 - 1e-12)
    return np.asarray(
        np.minimum(np.log(MIN_PROBABILITY) / np.log(known), MAX_INTERVALS)
    )
