# SPDX-License-Identifier: Apache-2.0

"""Rules of every order, as tests that its author can run.

A test module of a plugin needs no more than this::

    class TestMyOrder(order_contract.OrderContract):
        order = MyOrder()
"""

from collections.abc import Iterator
from collections.abc import Mapping
import copy
import dataclasses
import math

import numpy as np

from nova_fairness.model import cluster
from nova_fairness.model import request
from nova_fairness.planners.fairqueue import order as order_base
from nova_fairness.planners.fairqueue import planner

NOW = 10_000.0

_CLASSES = ('DISK_GB', 'MEMORY_MB', 'VCPU')
_PROJECTS = ('p1', 'p2', 'p3')
_USERS = ('u1', 'u2', 'u3')
_CLOUDS = 8
_MORE = (1.5, 4.0, 64.0)


def make_cloud(seed: int, requests: int = 18) -> cluster.ClusterSnapshot:
    """Build a small cloud that has no room for all waiting requests.

    :param seed: seed of the cloud: different numbers make different clouds.
    :param requests: number of waiting requests.
    """
    source = np.random.default_rng(seed)
    sizes = np.array([10, 1024, 1], np.int64)
    capacity: cluster.Amounts = source.integers(0, 17, (4, 1)) * sizes
    used = np.minimum(capacity, source.integers(0, 5, (4, 1)) * capacity // 4)
    part = {
        name: source.integers(1, 33, len(_CLASSES)) / 64 for name in _PROJECTS
    }
    below = {
        f'{project}/{user}': part[project] / 4
        for project in _PROJECTS
        for user in _USERS
    }
    return cluster.ClusterSnapshot(
        _CLASSES,
        tuple(cluster.Provider(f'uuid-{n}', f'h{n}') for n in range(4)),
        cluster.Inventory(capacity, used, capacity, np.ones_like(capacity)),
        tuple(_ask(source, n, float(n)) for n in range(requests)),
        {'p1': cluster.Limits({'VCPU': 2}, {}, {})},
        {name: used.sum(axis=0) // 3 for name in _PROJECTS},
        accounts=tuple(
            cluster.Account(name, None, float(source.integers(1, 9)))
            for name in _PROJECTS
        ),
        history={**part, **below},
    )


def _ask(
    source: np.random.Generator, number: int, at: float
) -> request.Request:
    vcpus = int(source.integers(1, 5))
    need = (('DISK_GB', 10), ('MEMORY_MB', 1024 * vcpus), ('VCPU', vcpus))
    uuid = f'r{number:02}'
    return request.Request(
        uuid,
        str(source.choice(_PROJECTS)),
        str(source.choice(_USERS)),
        tuple(f'{uuid}-{n}' for n in range(int(source.integers(1, 3)))),
        request.Demand(need),
        at,
    )


def clouds() -> Iterator[cluster.ClusterSnapshot]:
    """Yield the clouds for which every order must return a result."""
    for seed in range(_CLOUDS):
        yield make_cloud(seed)
    usual = make_cloud(0)
    yield make_cloud(0, requests=0)
    yield dataclasses.replace(usual, accounts=(), history={}, used={})
    none = tuple(cluster.Account(name, None, 0.0) for name in _PROJECTS)
    yield dataclasses.replace(usual, accounts=none)
    empty = np.zeros_like(usual.inventory.capacity)
    nothing = cluster.Inventory(empty, empty, empty, empty + 1)
    yield dataclasses.replace(usual, inventory=nothing)


def uuids_in_order(
    order: order_base.Order, snapshot: cluster.ClusterSnapshot
) -> list[str]:
    """Return the UUIDs of all waiting requests, the next one first."""
    found = order.arrange(snapshot.requests, snapshot, NOW)
    return [each.uuid for each in found]


class OrderContract:
    """Tests of one order; subclasses set :attr:`order`.

    A name that starts with ``Test`` makes pytest collect the subclass.
    """

    order: order_base.Order

    def test_description_is_one_line(self) -> None:
        """The description fits into a list for operators."""
        text = self.order.description
        if not text.strip() or '\n' in text:
            raise AssertionError(f'not one line: {text!r}')

    def test_every_request_comes_once(self) -> None:
        """The result has each request once, also without shares and use."""
        for snapshot in clouds():
            expected = sorted(each.uuid for each in snapshot.requests)
            _assert_equal(
                sorted(uuids_in_order(self.order, snapshot)), expected
            )

    def test_same_cloud_gets_the_same_order(self) -> None:
        """The order has no randomness, and no state from earlier calls."""
        listed = list(clouds())
        before = [uuids_in_order(self.order, each) for each in listed]
        after = [uuids_in_order(self.order, each) for each in reversed(listed)]
        _assert_equal(after[::-1], before)

    def test_arguments_are_not_changed(self) -> None:
        """The order does not change the snapshot, which other code reads
        later.
        """
        for snapshot in clouds():
            given = copy.deepcopy(snapshot)
            self.order.arrange(given.requests, given, NOW)
            _assert_equal(given.requests, snapshot.requests)
            _assert_equal(given.accounts, snapshot.accounts)
            for name in ('used', 'history'):
                _assert_same_amounts(
                    getattr(given, name), getattr(snapshot, name)
                )

    def test_how_requests_and_accounts_are_listed_does_not_matter(
        self,
    ) -> None:
        """Positions in the lists of a snapshot have no effect."""
        for snapshot in clouds():
            turned = dataclasses.replace(
                snapshot,
                requests=snapshot.requests[::-1],
                accounts=snapshot.accounts[::-1],
            )
            _assert_equal(
                uuids_in_order(self.order, turned),
                uuids_in_order(self.order, snapshot),
            )

    def test_names_of_projects_and_users_do_not_matter(self) -> None:
        """Names must have no effect on positions."""
        projects = dict(zip(_PROJECTS, reversed(_PROJECTS), strict=True))
        users = dict(zip(_USERS, reversed(_USERS), strict=True))
        for snapshot in clouds():
            renamed = _renamed(snapshot, projects, users)
            _assert_equal(
                uuids_in_order(self.order, renamed),
                uuids_in_order(self.order, snapshot),
            )

    def test_a_larger_share_is_never_served_later(self) -> None:
        """Each request of the project keeps its position or moves up."""
        for snapshot in clouds():
            for name in _PROJECTS:
                before = _places(self.order, snapshot, name)
                for factor in _MORE:
                    more = _with_share(snapshot, name, factor)
                    after = _places(self.order, more, name)
                    if any(b > a for a, b in zip(before, after, strict=True)):
                        raise AssertionError(
                            f'{factor:g} times its share: {name} had the'
                            f' places {before}, and has {after}'
                        )

    def test_factors_are_finite_numbers_of_requests_that_wait(self) -> None:
        """Factors are valid JSON numbers of waiting requests."""
        for snapshot in clouds():
            told = self.order.factors(snapshot.requests, snapshot, NOW)
            unknown = told.keys() - {each.uuid for each in snapshot.requests}
            _assert_equal(unknown, set())
            for uuid, named in told.items():
                bad = {k: v for k, v in named.items() if not math.isfinite(v)}
                if bad:
                    raise AssertionError(f'factors of {uuid}: {bad}')

    def test_factors_tell_no_name(self) -> None:
        """The factors do not name other accounts."""
        projects = dict(zip(_PROJECTS, reversed(_PROJECTS), strict=True))
        users = dict(zip(_USERS, reversed(_USERS), strict=True))
        for snapshot in clouds():
            renamed = _renamed(snapshot, projects, users)
            before = self.order.factors(snapshot.requests, snapshot, NOW)
            after = self.order.factors(renamed.requests, renamed, NOW)
            _assert_equal(
                {uuid: sorted(named) for uuid, named in after.items()},
                {uuid: sorted(named) for uuid, named in before.items()},
            )
            for uuid, named in before.items():
                np.testing.assert_allclose(
                    [after[uuid][name] for name in sorted(named)],
                    [named[name] for name in sorted(named)],
                    rtol=1e-9,
                    err_msg=f'factors of {uuid} change with names',
                )

    def test_no_plan_fills_a_host_beyond_its_capacity(self) -> None:
        """The planner works with any order of requests."""
        for snapshot in clouds():
            plan = planner.plan(snapshot, NOW, self.order)
            left = snapshot.inventory.capacity - snapshot.inventory.used
            rows = {each.name: n for n, each in enumerate(snapshot.providers)}
            asked = {each.uuid: each for each in snapshot.requests}
            for action in plan.actions:
                need = dict(asked[action.request].demand.amounts)
                one = cluster.amounts_vector(need, snapshot.classes)
                for host in action.hosts:
                    left[rows[host]] -= one
            if (left < 0).any():
                raise AssertionError(f'too much on a host: {left.tolist()}')


def _places(
    order: order_base.Order, snapshot: cluster.ClusterSnapshot, project: str
) -> list[int]:
    of = {each.uuid: each.project for each in snapshot.requests}
    names = uuids_in_order(order, snapshot)
    return [n for n, uuid in enumerate(names) if of[uuid] == project]


def _with_share(
    snapshot: cluster.ClusterSnapshot, name: str, factor: float
) -> cluster.ClusterSnapshot:
    accounts = tuple(
        dataclasses.replace(each, share=each.share * factor)
        if each.name == name
        else each
        for each in snapshot.accounts
    )
    return dataclasses.replace(snapshot, accounts=accounts)


def _renamed(
    snapshot: cluster.ClusterSnapshot,
    projects: Mapping[str, str],
    users: Mapping[str, str],
) -> cluster.ClusterSnapshot:
    def account(name: str) -> str:
        project, slash, user = name.partition('/')
        return projects[project] + slash + users.get(user, '')

    return dataclasses.replace(
        snapshot,
        requests=tuple(
            dataclasses.replace(
                each, project=projects[each.project], user=users[each.user]
            )
            for each in snapshot.requests
        ),
        accounts=tuple(
            dataclasses.replace(each, name=account(each.name))
            for each in snapshot.accounts
        ),
        limits={projects[name]: v for name, v in snapshot.limits.items()},
        used={projects[name]: v for name, v in snapshot.used.items()},
        history={account(name): v for name, v in snapshot.history.items()},
    )


def _assert_equal(got: object, expected: object) -> None:
    if got != expected:
        raise AssertionError(f'{got} is not {expected}')


def _assert_same_amounts(
    got: Mapping[str, object], expected: Mapping[str, object]
) -> None:
    _assert_equal(sorted(got), sorted(expected))
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name])
