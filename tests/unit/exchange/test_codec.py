# SPDX-License-Identifier: Apache-2.0

import base64
import json

import hypothesis
from hypothesis import strategies
import msgpack
import numpy as np
import pytest

from nova_fairness import exception
from nova_fairness.exchange import codec
from nova_fairness.exchange import desired
from nova_fairness.exchange import limits
from nova_fairness.model import node
from nova_fairness.model import report
from tests.unit.exchange import build

NAN, INF = float('nan'), float('inf')
COUNT = len(build.RESOURCES)
MEMORY = build.RESOURCES.index('memory')
GRADES = 2 * report.GRADES
ENDOWED, USED, WANTED, GRADED = (2 + kind * COUNT for kind in range(4))
WIDTH = GRADED + GRADES

names = strategies.text(
    strategies.characters(codec='utf-8', exclude_categories=('C', 'Z')),
    min_size=1,
    max_size=12,
)


@strategies.composite
def reports(draw):
    ids = tuple(sorted(draw(strategies.sets(names, max_size=6))))
    capacity = np.array(
        draw(
            strategies.lists(
                strategies.floats(0, 1e7), min_size=COUNT, max_size=COUNT
            )
        )
    )
    interval_s = draw(strategies.floats(0.5, 100))
    what = node.NodeResources(
        host=draw(names),
        cpus=tuple(
            sorted(
                draw(strategies.sets(strategies.integers(0, 99), min_size=1))
            )
        ),
        speed_factor=draw(strategies.floats(0.1, 1e4)),
        capacity=capacity,
    )
    parts = strategies.lists(
        strategies.floats(0, 1), min_size=COUNT, max_size=COUNT
    )
    share = np.array([draw(parts) for _ in ids]).reshape(len(ids), COUNT)
    supply = what.supply(interval_s)
    heaviness = strategies.floats(-1e5, 1e5)
    vcpus = strategies.lists(
        strategies.floats(0, 1e3), min_size=GRADES, max_size=GRADES
    )
    return report.NodeReport(
        host=what.host,
        boot_id=draw(names),
        sequence=draw(strategies.integers(0, codec.LARGEST_SEQUENCE)),
        interval_s=interval_s,
        metric=draw(names),
        resources=what,
        users=report.UserTable(
            ids,
            np.array([draw(heaviness) for _ in ids]),
            share / max(1, len(ids)) * supply,
            share * supply,
            np.array(
                [draw(strategies.integers(1, 99)) for _ in ids], np.int64
            ),
            share * supply * draw(strategies.floats(1, 100)),
            np.array([draw(vcpus) for _ in ids]).reshape(len(ids), GRADES),
        ),
    )


wishes = strategies.none() | strategies.builds(
    desired.DesiredChoice,
    epoch=strategies.integers(1, desired.LARGEST_EPOCH),
    metric=names,
    policy=names,
    origin=names,
)


@hypothesis.given(reports(), wishes)
def test_a_written_report_is_read_from_any_carrier(sent, wish):
    written = codec.encode(sent, wish)
    with_bytes = codec.encode(sent, wish, as_bytes=True)
    for carried in (
        written,
        json.loads(json.dumps(written, allow_nan=False)),
        msgpack.unpackb(msgpack.packb(written)),
        msgpack.unpackb(msgpack.packb(with_bytes)),
    ):
        got = codec.decode(carried, build.LIMITS)
        assert build.same(got.report, sent)
        assert got.desired == wish


def test_size_grows_with_users_and_not_with_vms():
    few = build.node_report(users=('anna',))
    table = few.users
    table.instances[0] = 99_999
    many = build.node_report(table=table)
    sizes = [len(json.dumps(codec.encode(item))) for item in (few, many)]
    assert sizes[0] == sizes[1]


def test_report_of_plain_totals_is_written_too():
    plain = build.node_report(table=dict(build.table('anna', 'zoe')))
    got = codec.decode(codec.encode(plain), build.LIMITS)
    assert build.same(got.report, plain)


def test_resources_in_another_order_are_understood_by_name():
    sent = build.node_report()
    sent.users.usage[:] = np.arange(2 * COUNT).reshape(2, COUNT)
    sent.users.endowment[:] = sent.users.usage / 10
    sent.resources.capacity[:] = np.arange(COUNT) + 10
    sent.users.grades[:] = np.arange(2 * GRADES).reshape(2, GRADES)
    written = codec.encode(sent)
    numbers = np.frombuffer(base64.b64decode(written['table'])).reshape(
        2, WIDTH
    )
    order = np.roll(np.arange(COUNT), 1)
    columns = [0, 1, *(2 + k * COUNT + i for k in range(3) for i in order)]
    columns += range(GRADED, WIDTH)
    written['resources'] = [build.RESOURCES.names[i] for i in order]
    written['capacity'] = [written['capacity'][i] for i in order]
    written['table'] = base64.b64encode(numbers[:, columns].tobytes()).decode()
    assert build.same(codec.decode(written, build.LIMITS).report, sent)


def exempted(part=0.5):
    told = build.table('anna', 'zoe')
    told.exempt = told.grades * part
    return build.node_report(table=told)


@pytest.mark.parametrize('as_bytes', [True, False])
def test_reports_include_exempt_vms_if_present(as_bytes):
    sent = codec.encode(exempted(), as_bytes=as_bytes)
    users = codec.decode(sent, build.LIMITS).report.users
    assert users.exempt.tolist() == (users.grades / 2).tolist()
    assert 'exempt' not in codec.encode(build.node_report())
    # A node that does not know the field reads all the rest.
    del sent['exempt']
    read = codec.decode(sent, build.LIMITS).report.users
    assert read.exempt is None
    assert read.grades.tolist() == users.grades.tolist()


def test_exempt_vms_are_read_although_the_rest_has_not_changed():
    before = codec.decode(
        codec.encode(build.node_report(), as_bytes=True), build.LIMITS
    ).lasting
    sent = codec.encode(exempted(), as_bytes=True)
    assert codec.shorten(sent, codec.parse_head(sent), before) is None
    read = codec.decode(sent, build.LIMITS, before).report
    assert read.users.exempt.any()


@pytest.mark.parametrize(
    ('sent', 'reason', 'text'),
    [
        (b'', 'malformed', 'exempt holds 0 bytes; expected 256 for 2 users'),
        (7, 'malformed', 'exempt must be 256 bytes or 344 characters'),
        ('?' * 344, 'malformed', 'exempt is no base64'),
        (np.full(32, np.nan).tobytes(), 'bounds', 'from 0 to the grades'),
        (np.full(32, -1.0).tobytes(), 'bounds', 'from 0 to the grades'),
        (np.full(32, 99.0).tobytes(), 'bounds', 'from 0 to the grades'),
    ],
)
def test_impossible_exempt_vms_in_a_report_are_refused(sent, reason, text):
    message = codec.encode(build.node_report(), as_bytes=True)
    with pytest.raises(exception.ReportRefused, match=text) as caught:
        codec.decode({**message, 'exempt': sent}, build.LIMITS)
    assert caught.value.reason == reason


def test_fields_of_later_releases_are_ignored():
    codec.decode(build.message(later={'deep': [1]}), build.LIMITS)


def block(**changes):
    """The table of a good message with one number replaced."""
    good = base64.b64decode(build.message()['table'])
    numbers = np.frombuffer(good).reshape(2, WIDTH).copy()
    for place, value in changes.items():
        numbers[1, int(place[1:])] = value
    return base64.b64encode(numbers.tobytes()).decode()


def renamed(*users):
    return {'users': list(users)}


HUGE = 10**400
REFUSED = {
    'no object': ([], 'malformed', 'must be an object, got list'),
    'nothing': (None, 'malformed', 'must be an object, got NoneType'),
    'text': ('x' * 999, 'malformed', 'must be an object'),
    'version of later': (build.message(version=4), 'version', 'version 4'),
    'version of before': (build.message(version=2), 'version', 'version 2'),
    'version as text': (
        build.message(version='1'),
        'malformed',
        r'got `str` - at `\$.version`',
    ),
    'version that equals': (
        build.message(version=True),
        'malformed',
        r'got `bool` - at `\$.version`',
    ),
    'no version': (
        build.without('version'),
        'malformed',
        'missing required field `version`',
    ),
    'no host': (build.without('host'), 'malformed', '`host`'),
    'no desired': (build.without('desired'), 'malformed', '`desired`'),
    'host of bytes': (build.message(host=b'n'), 'malformed', 'got `bytes`'),
    'host without name': (build.message(host=''), 'malformed', 'length >= 1'),
    'long host': (build.message(host='n' * 256), 'malformed', '<= 255'),
    'host over two lines': (build.message(host='a\nb'), 'malformed', 'host'),
    'host that cannot be written': (
        build.message(host='\ud800'),
        'malformed',
        'host',
    ),
    'boot id that is a number': (
        build.message(boot_id=7),
        'malformed',
        r'got `int` - at `\$.boot_id`',
    ),
    'sequence below 0': (build.message(sequence=-1), 'malformed', '>= 0'),
    'sequence that is huge': (
        build.message(sequence=HUGE),
        'malformed',
        f'<= {codec.LARGEST_SEQUENCE} ',
    ),
    'sequence that is true': (
        build.message(sequence=True),
        'malformed',
        'sequence',
    ),
    'sequence with a fraction': (
        build.message(sequence=1.5),
        'malformed',
        'sequence',
    ),
    'no interval': (build.message(interval_s=0), 'malformed', 'interval_s'),
    'interval that is none': (
        build.message(interval_s=NAN),
        'malformed',
        r'>= 0.01 - at `\$.interval_s`',
    ),
    'endless interval': (
        build.message(interval_s=INF),
        'malformed',
        r'<= 86400.0 - at `\$.interval_s`',
    ),
    'huge interval': (
        build.message(interval_s=HUGE),
        'malformed',
        # msgspec before 0.22 names the least that it may be.
        r'(out of range|>= 0\.01) - at `\$.interval_s`',
    ),
    'long metric': (build.message(metric='m' * 256), 'malformed', 'metric'),
    'no cpus': (build.message(cpus=[]), 'malformed', 'cpus must be first'),
    'cpus of half a run': (build.message(cpus=[1]), 'malformed', 'cpus'),
    'cpus below 0': (build.message(cpus=[-1, 0]), 'malformed', 'cpus'),
    'cpus downwards': (build.message(cpus=[2, 1]), 'malformed', 'cpus'),
    'cpus twice': (build.message(cpus=[0, 2, 2, 3]), 'malformed', 'cpus'),
    'cpus without end': (
        build.message(cpus=[0, 10**12]),
        'malformed',
        'below 16384',
    ),
    'cpus of text': (build.message(cpus='0-3'), 'malformed', '`array`'),
    'cpus of other things': (
        build.message(cpus=[0, None]),
        'malformed',
        r'Expected `int`, got `null` - at `\$.cpus\[1\]`',
    ),
    'speed below 0': (
        build.message(speed_factor=-1.0),
        'malformed',
        'speed_factor',
    ),
    'another set of resources': (
        build.message(resources=['cpu_time', 'gpu_time']),
        'resources',
        'unknown here: .gpu_time., missing: disk_read',
    ),
    'a resource twice': (
        build.message(
            resources=[*build.RESOURCES.names, build.RESOURCES.names[0]]
        ),
        'resources',
        f'counts {COUNT + 1} resources',
    ),
    'few capacities': (
        build.message(capacity=[1.0]),
        'malformed',
        f'capacity has 1 numbers; expected {COUNT}',
    ),
    'capacity below 0': (
        build.message(capacity=[-1.0] * COUNT),
        'bounds',
        'capacity of cpu_time is -1.0',
    ),
    'capacity that is none': (
        build.message(capacity=[NAN] * COUNT),
        'bounds',
        'is nan; expected 0 to',
    ),
    'capacity that is huge': (
        build.message(capacity=[1e300] * COUNT),
        'bounds',
        'n1 says .* is 1e.300; .*peer_capacity_file names no other',
    ),
    'capacity that is no float': (
        build.message(capacity=[HUGE] * COUNT),
        'malformed',
        # msgspec before 0.22 does not say where.
        r'out of range( - at `\$.capacity|$)',
    ),
    'users that are none': (
        build.message(users=None),
        'malformed',
        r'`array`, got `null` - at `\$.users`',
    ),
    'too many users': (
        build.message(users=['u'] * 51),
        'malformed',
        'of 51 users; expected at most 50',
    ),
    'a user twice': (
        build.message(**renamed('zoe', 'zoe')),
        'malformed',
        'ascending, each once',
    ),
    'users in disorder': (
        build.message(**renamed('zoe', 'anna')),
        'malformed',
        'ascending',
    ),
    'a user with a long id': (
        build.message(**renamed('a', 'u' * 256)),
        'malformed',
        r'length <= 255 - at `\$.users',
    ),
    'a user that cannot be written': (
        build.message(**renamed('a', '\udfff')),
        'malformed',
        'cannot be printed',
    ),
    'a user that is a number': (
        build.message(**renamed('a', 1)),
        'malformed',
        r'`str`, got `int` - at `\$.users\[1\]`',
    ),
    'more users than numbers': (
        build.message(**renamed('a', 'b', 'c')),
        'malformed',
        'characters of base64, got',
    ),
    'fewer bytes than users': (
        build.message(table=bytes(WIDTH * 8)),
        'malformed',
        f'holds {WIDTH * 8} bytes; expected {2 * WIDTH * 8} for 2 users',
    ),
    'bytes that are no numbers': (
        build.message(table=b'\xff' * (2 * WIDTH * 8)),
        'malformed',
        'finite',
    ),
    'a table of numbers': (
        build.message(table=[0.0]),
        'malformed',
        'got list',
    ),
    'a table of other characters': (
        build.message(table='\u20ac' * len(build.message()['table'])),
        'malformed',
        'no base64',
    ),
    'a table that ends early': (
        build.message(
            users=['a', 'b', 'c'], table='A' * (4 * WIDTH * 8 - 1) + '='
        ),
        'malformed',
        f'holds {3 * WIDTH * 8 - 1} bytes; expected {3 * WIDTH * 8}',
    ),
    'a host of no known type': (
        build.message(host=complex(1)),
        'malformed',
        'got `complex`',
    ),
    'a table with blanks': (
        build.message(table=' ' * len(build.message()['table'])),
        'malformed',
        'table',
    ),
    'heaviness that is none': (
        build.message(table=block(_0=NAN)),
        'malformed',
        'finite numbers',
    ),
    'endless usage': (
        build.message(table=block(**{f'_{USED}': INF})),
        'malformed',
        'finite',
    ),
    'usage that cannot be added up': (
        build.message(table=block(**{f'_{USED}': 1.7e308})),
        'malformed',
        'below 1e.300',
    ),
    'no VM': (build.message(table=block(_1=0)), 'bounds', 'number of VMs'),
    'half a VM': (build.message(table=block(_1=1.5)), 'bounds', 'of VMs'),
    'VMs beyond counting': (
        build.message(table=block(_1=1e299)),
        'bounds',
        'of VMs',
    ),
    'heaviness beyond belief': (
        build.message(table=block(_0=-1e7)),
        'bounds',
        'n1 says that a user is heavier than 1e.06',
    ),
    'endowment below 0': (
        build.message(table=block(**{f'_{ENDOWED}': -1.0})),
        'bounds',
        'endowment must not be negative',
    ),
    'endowments beyond the node': (
        build.message(table=block(**{f'_{ENDOWED}': 1001.0})),
        'bounds',
        'endowment of cpu_time is 1011 in all; expected at most 1001',
    ),
    'usage beyond any node': (
        build.message(table=block(**{f'_{USED + MEMORY}': 1e16})),
        'bounds',
        'usage of memory is 1e.16 in all; expected at most 1.001e.15',
    ),
    'wanted below 0': (
        build.message(table=block(**{f'_{WANTED}': -1.0})),
        'bounds',
        'wanted must not be negative',
    ),
    'wanted without end': (
        build.message(table=block(**{f'_{WANTED}': INF})),
        'malformed',
        'finite',
    ),
    'vCPUs below 0': (
        build.message(table=block(**{f'_{GRADED}': -1.0})),
        'bounds',
        'grades must be vCPUs from 0',
    ),
    'vCPUs beyond counting': (
        build.message(table=block(**{f'_{WIDTH - 1}': 1e20})),
        'bounds',
        'n1: grades must be vCPUs from 0 to 1.6384e.09',
    ),
    'vCPUs that are none': (
        build.message(table=block(**{f'_{GRADED}': NAN})),
        'malformed',
        'finite',
    ),
    'desired state of text': (
        build.message(desired='x'),
        'malformed',
        r'got `str` - at `\$.desired`',
    ),
    'desired state before the first': (
        build.message(
            desired={'epoch': 0, 'metric': 'm', 'policy': 'p', 'origin': 'o'}
        ),
        'malformed',
        r'`int` >= 1 - at `\$.desired.epoch`',
    ),
    'a desired state without origin': (
        build.message(desired={'epoch': 1, 'metric': 'm', 'policy': 'p'}),
        'malformed',
        r'missing required field `origin` - at `\$.desired`',
    ),
}


@pytest.mark.parametrize(
    ('sent', 'reason', 'text'), REFUSED.values(), ids=REFUSED
)
def test_invalid_reports_are_refused_and_named(sent, reason, text):
    with pytest.raises(exception.ReportRefused, match=text) as caught:
        codec.decode(sent, build.LIMITS)
    assert caught.value.reason == reason
    assert len(str(caught.value)) < 400


ANYTHING = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=9)
    | strategies.binary(max_size=9),
    lambda inner: (
        strategies.lists(inner, max_size=4)
        | strategies.dictionaries(
            strategies.text(max_size=4) | strategies.integers(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@hypothesis.given(
    ANYTHING
    | strategies.builds(
        lambda name, value: build.message(**{name: value}),
        strategies.sampled_from(sorted(build.message())),
        ANYTHING,
    )
)
def test_garbage_is_refused_and_never_crashes(sent):
    try:
        got = codec.decode(sent, build.LIMITS)
    except exception.ReportRefused:
        return
    assert np.isfinite(got.report.users.usage).all()
    assert np.isfinite(got.report.resources.capacity).all()


def test_a_million_users_are_refused_without_reading_them():
    sent = build.message(users=['u'] * 1_000_000, table='A' * 1000)
    with pytest.raises(exception.ReportRefused, match='of 1000000 users'):
        codec.decode(sent, limits.Bounds())


def test_an_own_report_with_nan_is_not_sent():
    broken = build.node_report()
    broken.users.usage[0, 0] = NAN
    with pytest.raises(exception.ExchangeError, match=r'n1 .* not finite'):
        codec.encode(broken)


@pytest.mark.parametrize(
    ('sent', 'expected'),
    [(build.message(version=9), 'n1'), ({}, ''), (7, ''), ({'host': 1}, '')],
)
def test_a_refused_message_is_put_down_to_the_host_it_names(sent, expected):
    assert codec.claimed_host(sent) == expected
