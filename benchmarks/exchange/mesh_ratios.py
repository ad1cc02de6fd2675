# SPDX-License-Identifier: Apache-2.0

"""Ratios of the rows that ``mesh.py`` measures."""

import numpy as np

LIMITS = {'driver': 1.5, 'exchange': 4.0}
"""Largest ratio to plain PUB/SUB, by way."""

MODEL_NODES = 1000
QUANTITIES = (
    'cpu_ms_per_node_round',
    'bytes_per_node_round',
    'descriptors_per_node',
    'pss_kib_per_node',
)


def model(rows: list[dict]) -> list[dict]:
    """Extrapolate to :data:`MODEL_NODES` by a straight line; not measured."""
    fitted = []
    for kind in dict.fromkeys(row['kind'] for row in rows):
        for users in sorted({row['users'] for row in rows}):
            part = [
                row
                for row in rows
                if row['kind'] == kind and row['users'] == users
            ]
            if len(part) < 2:
                continue
            fitted.append(
                {
                    'kind': kind,
                    'users': users,
                    'nodes': MODEL_NODES,
                    'model': 'straight line, not measured',
                    **{name: _extrapolated(part, name) for name in QUANTITIES},
                }
            )
    return fitted


def _extrapolated(rows: list[dict], quantity: str) -> float:
    slope, offset = np.polyfit(
        [row['nodes'] for row in rows], [row[quantity] for row in rows], 1
    )
    return float(slope * MODEL_NODES + offset)


def ratios(rows: list[dict]) -> list[dict]:
    """Compare each way with plain PUB/SUB of the same run."""
    reference = {
        (row['nodes'], row['users']): row['cpu_ms_per_node_round']
        for row in rows
        if row['kind'] == 'pubsub'
    }
    return [
        {
            'kind': row['kind'],
            'nodes': row['nodes'],
            'users': row['users'],
            'cpu_ratio': row['cpu_ms_per_node_round']
            / reference[row['nodes'], row['users']],
            'limit': LIMITS[row['kind']],
        }
        for row in rows
        if row['kind'] in LIMITS
    ]
