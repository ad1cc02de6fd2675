# SPDX-License-Identifier: Apache-2.0

"""Raising users: their shares first, then their parts of each resource."""

import dataclasses

import numpy as np

from fairness_lab.ideal import columns as columns_module
from fairness_lab.ideal import filling
from fairness_lab.ideal import program as program_module
from nova_fairness import exception

Floats = program_module.Floats
Columns = columns_module.Columns


def program_of(
    found: Columns,
    quota: Floats,
    rows: program_module.Entries,
    bound: Floats,
) -> program_module.Program:
    """Put columns and limits into a program of (u x r) entities."""
    return program_module.Program(
        upper=np.ones(len(found.node)),
        limits=rows,
        bound=bound,
        entities=columns_module.shares(found, quota),
        base=np.zeros(quota.size),
        floor=np.full(quota.size, np.nan),
    )


def raised(
    program: program_module.Program, counts: Floats, solver: filling.Solver
) -> tuple[Floats, program_module.Program]:
    """Raise the users' shares, then their parts of each resource.

    :param program: whose entities are parts, user x resources + resource.
    :param counts: (u, r) how much each part counts in its user's share.
    :returns: the parts (u, r); and the program with floors at which those
        are held.
    """
    users, kinds = counts.shape
    entries, part = program.entities, program.entities.row
    factor = counts.ravel()[part]
    of_share = program_module.Entries(
        part // kinds, entries.column, entries.value * factor
    )
    chosen = factor > 0
    of_share = program_module.Entries(
        of_share.row[chosen], of_share.column[chosen], of_share.value[chosen]
    )
    base = (program.base.reshape(users, kinds) * counts).sum(axis=1)
    first = dataclasses.replace(
        program, entities=of_share, base=base, floor=np.full(users, np.nan)
    )
    share = filling.levels(first, solver)
    both = _after(program, of_share, base, share, counts)
    try:
        parts = filling.levels(both, solver)
    except exception.SolverFailed:
        parts = _some_parts(first, share, both, solver)
    held = dataclasses.replace(both, floor=parts)
    return parts[users:].reshape(users, kinds), held


def _some_parts(
    first: program_module.Program,
    share: Floats,
    both: program_module.Program,
    solver: filling.Solver,
) -> Floats:
    """Parts with which shares are reached, where no best are found.

    Levels that many others depend on can be out of reach by rounding; then
    all floors are lowered a little.

    :raises SolverFailed: if that is not enough.
    """
    worth = np.ones(len(first.upper))
    worth[~np.isfinite(first.upper)] = 0.0
    for part in (1.0, 0.999, 0.99, 0.97):
        held = dataclasses.replace(first, floor=share * part)
        try:
            value = filling.solution(held, solver, worth)
        except exception.SolverFailed:
            continue
        return both.base + both.entities.times(value, len(both.base))
    raise exception.SolverFailed(
        'no allocation gives users 97 % of the shares that were found, '
        'expected all of them'
    )


def _after(
    program: program_module.Program,
    of_share: program_module.Entries,
    base: Floats,
    share: Floats,
    counts: Floats,
) -> program_module.Program:
    """Hold the shares, and open the parts that are not a share."""
    users = len(share)
    is_share = (counts == 1.0) & ((counts > 0).sum(axis=1) == 1)[:, np.newaxis]
    known = np.where(is_share, share[:, np.newaxis], np.nan).ravel()
    parts = dataclasses.replace(
        program.entities, row=program.entities.row + users
    )
    return dataclasses.replace(
        program,
        entities=program_module.Entries.joined([of_share, parts]),
        base=np.concatenate([base, program.base]),
        floor=np.concatenate([share, known]),
    )


def rank(parts: Floats, counts: Floats) -> list[float]:
    """Sort shares for comparison, the poorest first; rounding aside."""
    shares = np.sort((parts * counts).sum(axis=1))
    return [float(f'{share:.4g}') for share in shares]
