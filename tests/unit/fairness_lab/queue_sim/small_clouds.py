# SPDX-License-Identifier: Apache-2.0

"""Clouds small enough to be worked out by hand."""

import math

import numpy as np

from fairness_lab.queue_sim import workload

ONE = workload.Size(1, 1024)
"""A quarter of a host."""

WHOLE = workload.Size(4, 4096)
PAIR = workload.Size(4, 4096, servers=2)


def cloud(
    requests,
    hosts=1,
    duration_s=1000.0,
    cycle_s=10.0,
    half_life_s=100.0,
    longest_wait_s=None,
    shares=(1.0, 1.0),
    patience_s=86400.0,
    estimates_s=None,
    preemptible=(),
    notice_s=30.0,
):
    """A cloud of hosts of 4 VCPUs; project ``p0`` has user ``u0`` alone, ...

    :param requests: tuples of when, project, size, lifetime and, if it is
        deleted, when.
    :param preemptible: projects whose servers make room.
    """
    sizes = tuple(dict.fromkeys(each[2] for each in requests)) or (ONE,)
    deleted = [each[4] if len(each) > 4 else math.inf for each in requests]
    owners = workload.Owners(
        tuple(f'p{n}' for n in range(len(shares))),
        tuple(shares),
        tuple(f'u{n}' for n in range(len(shares))),
        tuple(range(len(shares))),
    )
    stream = workload.Stream(
        np.array([each[0] for each in requests], dtype=float),
        np.array([each[3] for each in requests], dtype=float),
        np.array(deleted, dtype=float),
        np.array([each[1] for each in requests], dtype=np.int64),
        np.array([sizes.index(each[2]) for each in requests], dtype=np.int64),
        sizes,
        preemptible=np.array([each[1] in preemptible for each in requests]),
    )
    return workload.QueuedCloud(
        'small',
        'a test',
        0,
        duration_s,
        cycle_s,
        half_life_s,
        longest_wait_s,
        patience_s,
        estimates_s,
        np.array([[4096, 4]] * hosts, dtype=np.int64),
        owners,
        stream,
        notice_s,
    )
