# SPDX-License-Identifier: Apache-2.0

"""Casts made of Nova's own objects, and what becomes of them."""

import dataclasses
import json

import hypothesis
from hypothesis import strategies as st
from nova import objects
import pytest

from nova_fairness import exception
from nova_fairness.cluster.messages import parser
from nova_fairness.cluster.messages import times
from nova_fairness.model import envelope
from nova_fairness.model import eviction
from nova_fairness.model import request
from tests.fixtures import nova_casts

U = nova_casts.UUIDS


def demand_of(**more):
    return parser.parse_message(
        nova_casts.build([nova_casts.spec(**more)])
    ).demand


def amounts_of(**more):
    return dict(demand_of(**more).amounts)


def changed_build(change):
    cast = nova_casts.build([nova_casts.spec()])
    return nova_casts.changed(cast, change)


def first_spec(message):
    return message['args']['request_specs'][0]['nova_object.data']


def test_all_fields_of_a_build_are_read():
    found = parser.parse_message(
        nova_casts.build([nova_casts.spec()]),
        lambda *_: times.RequestLimits(None, 60.0),
    )
    assert found == request.Request(
        uuid=U[0],
        project='the-project',
        user='the-user',
        servers=(U[0],),
        demand=request.Demand(
            (('DISK_GB', 5), ('MEMORY_MB', 512), ('VCPU', 2))
        ),
        asked_at=100.0,
        expires_at=160.0,
        flavor='small',
    )


@pytest.mark.parametrize(
    ('given', 'read'),
    [('web-1', ('web-1',)), (None, ()), ('a\nb\x1b', ('a\\nb\\x1b',))],
)
def test_names_of_servers_are_read_as_one_line(given, read):
    server = objects.Instance(uuid=U[0], display_name=given)
    builds = [objects.BuildRequest(instance_uuid=U[0], instance=server)]
    cast = nova_casts.build([nova_casts.spec()], build_requests=builds)
    assert parser.parse_message(cast).names == read


def test_names_that_cannot_be_read_keep_no_request_from_being_read():
    cast = nova_casts.build([nova_casts.spec()], build_requests=[{'odd': 1}])
    assert parser.parse_message(cast).names == ()


MARKS = parser.PreemptibleRules(marks=True)
SAYS = {parser.MARK: 'true'}
HINTS = {parser.MARK: ['true']}


def instance(metadata, server=U[0]):
    return objects.Instance(uuid=server, metadata=metadata)


def built(metadata=None, **more):
    spec = nova_casts.spec(**more)
    builds = [
        objects.BuildRequest(
            instance_uuid=U[0], instance=instance(metadata or {})
        )
    ]
    return nova_casts.build([spec], build_requests=builds)


@pytest.mark.parametrize(
    'cast',
    [
        built(metadata=SAYS),
        built(metadata={parser.MARK: 'Yes'}),
        built(scheduler_hints={parser.MARK: ['1']}),
        nova_casts.unshelve(nova_casts.spec(scheduler_hints=HINTS)),
    ],
)
def test_a_request_with_the_mark_is_preemptible(cast):
    assert parser.parse_message(cast, preemptible=MARKS).is_preemptible
    assert not parser.parse_message(cast).is_preemptible


@pytest.mark.parametrize('said', ['', 'false', 'no', '0', 'maybe', '2'])
def test_a_mark_with_another_value_than_yes_is_ignored(said):
    cast = built(metadata={parser.MARK: said})
    assert (
        parser.parse_message(cast, preemptible=MARKS).band
        is request.Band.NORMAL
    )


BY = {parser.ACTION: 'snapshot_delete'}


@pytest.mark.parametrize(
    'cast',
    [
        built(metadata=BY),
        # Who asks knows better than the flavor.
        built(
            metadata=BY,
            scheduler_hints={parser.ACTION: ['delete']},
            made_of=nova_casts.flavor(extra_specs={parser.ACTION: 'stop'}),
        ),
        # What may not be chosen counts as if it was not said.
        built(
            metadata={parser.ACTION: 'suspend'},
            scheduler_hints={parser.ACTION: ['snapshot_delete']},
        ),
        built(made_of=nova_casts.flavor(extra_specs=BY)),
        nova_casts.unshelve(
            nova_casts.spec(
                scheduler_hints={parser.ACTION: ['snapshot_delete']}
            )
        ),
    ],
)
def test_owners_choose_the_eviction_action_of_their_server(cast):
    choices = frozenset(eviction.EvictionAction) - {
        eviction.EvictionAction.SUSPEND
    }
    may = parser.PreemptibleRules(choices=choices)
    found = parser.parse_message(cast, preemptible=may)
    assert found.leaves_by is eviction.EvictionAction.SNAPSHOT_DELETE
    assert parser.parse_message(cast).leaves_by is None


@pytest.mark.parametrize('said', ['', 'reboot', 'suspend', 'SHELVE', None])
def test_a_forbidden_eviction_action_is_ignored(said):
    cast = built(metadata={parser.ACTION: said} if said is not None else {})
    may = parser.PreemptibleRules(
        choices=frozenset({eviction.EvictionAction.SHELVE})
    )
    assert parser.parse_message(cast, preemptible=may).leaves_by is None


def test_a_project_can_be_preemptible_as_a_whole():
    cast = built()
    named = parser.PreemptibleRules(projects=frozenset({'the-project'}))
    assert parser.parse_message(cast, preemptible=named).is_preemptible
    other = parser.PreemptibleRules(True, frozenset({'x'}))
    assert not parser.parse_message(cast, preemptible=other).is_preemptible


def test_a_flavor_can_be_preemptible_where_users_may_mark_nothing():
    cast = built(made_of=nova_casts.flavor(extra_specs=SAYS))
    assert parser.parse_message(cast).is_preemptible
    assert parser.parse_message(cast, preemptible=MARKS).is_preemptible
    by_users = built(metadata=SAYS, scheduler_hints=HINTS)
    assert not parser.parse_message(by_users).is_preemptible


def test_a_malformed_mark_makes_the_message_unreadable():
    cast = nova_casts.changed(
        built(),
        lambda message: first_spec(message).update(scheduler_hints=[1]),
    )
    with pytest.raises(exception.Unreadable, match='scheduler_hints'):
        parser.parse_message(cast, preemptible=MARKS)


def test_many_servers_of_one_build_are_one_request():
    specs = [nova_casts.spec(each) for each in U[:1000]]
    found = parser.parse_message(nova_casts.build(specs))
    assert found.servers == tuple(U[:1000])


def test_a_request_sent_without_hosts_fails_in_nova():
    specs = [nova_casts.spec(each) for each in U[:2]]
    cast = nova_casts.build(specs, admin_password='secret')
    found = parser.with_nonexistent_host(cast)
    message, before = (
        dict(envelope.parse_message(each.body)) for each in (found, cast)
    )
    for spec in message['args'].pop('request_specs'):
        made = objects.RequestSpec.obj_from_primitive(spec)
        assert made.force_hosts == ['nova-fairness-nowhere']
    before['args'].pop('request_specs')
    assert message == before
    assert (
        parser.parse_message(found).servers
        == parser.parse_message(cast).servers
    )


@pytest.mark.parametrize(
    'cast',
    [
        nova_casts.unshelve(nova_casts.spec()),
        dataclasses.replace(built(), body=b'nonsense'),
    ],
)
def test_a_message_that_is_no_build_is_unchanged(cast):
    assert parser.with_nonexistent_host(cast) is cast


def specs_of(cast):
    arguments = envelope.parse_message(cast.body)['args']
    found = arguments.get('request_specs') or [arguments['request_spec']]
    return [objects.RequestSpec.obj_from_primitive(each) for each in found]


@pytest.mark.parametrize(
    'cast',
    [
        nova_casts.build([nova_casts.spec(each) for each in U[:2]]),
        nova_casts.unshelve(nova_casts.spec()),
    ],
)
def test_a_sent_request_excludes_hosts_reserved_for_others(cast):
    before = [
        each.to_legacy_filter_properties_dict() for each in specs_of(cast)
    ]
    found = parser.with_excluded_hosts(
        parser.with_excluded_hosts(cast, {'h3'}), {'h1', 'h2'}
    )
    for each, old in zip(specs_of(found), before, strict=True):
        told = each.to_legacy_filter_properties_dict()
        assert told.pop('ignore_hosts') == ['h1', 'h2', 'h3']
        assert told.keys() == old.keys()
    assert parser.parse_message(found) == parser.parse_message(cast)
    assert parser.with_excluded_hosts(cast, ()) is cast


def test_an_unreadable_message_is_sent_unchanged():
    cast = dataclasses.replace(built(), body=b'nonsense')
    assert parser.with_excluded_hosts(cast, {'h1'}) is cast


def test_a_message_of_ten_megabytes_is_read():
    files = [['/etc/x', 'A' * 10_000_000]]
    cast = nova_casts.build([nova_casts.spec()], injected_files=files)
    assert len(cast.body) > 10_000_000
    assert parser.parse_message(cast).servers == (U[0],)


@pytest.mark.parametrize(
    ('extra', 'amounts', 'required', 'forbidden'),
    [
        (
            {'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'isolate'},
            {'PCPU': 2},
            set(),
            {'HW_CPU_HYPERTHREADING'},
        ),
        (
            {'hw:mem_encryption': 'True'},
            {'MEM_ENCRYPTION_CONTEXT': 1},
            set(),
            set(),
        ),
        ({'hw:mem_encryption': 'False'}, {}, set(), set()),
        (
            {'accel:device_profile': 'gpu'},
            {},
            {'COMPUTE_ACCELERATORS'},
            set(),
        ),
    ],
)
def test_all_spellings_of_extra_specs_are_read(
    extra, amounts, required, forbidden
):
    found = demand_of(made_of=nova_casts.flavor(extra_specs=extra))
    plain = {'VCPU': 2} if 'PCPU' not in amounts else {}
    expected = {'DISK_GB': 5, 'MEMORY_MB': 512, **plain, **amounts}
    assert dict(found.amounts) == expected
    assert (found.required, found.forbidden) == (required, forbidden)


def test_firmware_of_an_image_becomes_a_required_trait():
    found = demand_of(image={'hw_firmware_stateless': True}.items())
    assert found.required == {'COMPUTE_SECURITY_STATELESS_FIRMWARE'}


@pytest.mark.parametrize('image', [None, {'properties': None}])
def test_a_server_may_have_no_image(image):
    cast = nova_casts.build([nova_casts.spec()])
    written = image and {
        'nova_object.name': 'ImageMeta',
        'nova_object.version': '1.8',
        'nova_object.data': image,
    }
    bare = nova_casts.changed(
        cast, lambda message: first_spec(message).update(image=written)
    )
    assert (
        parser.parse_message(bare).demand == parser.parse_message(cast).demand
    )


def test_a_volume_takes_no_disk_of_the_host():
    assert amounts_of(is_bfv=True)['DISK_GB'] == 2


def test_ports_and_devices_of_their_own_groups_are_added():
    group = objects.RequestGroup(
        requester_id='port', resources={'CUSTOM_NIC': 2}, required_traits={'T'}
    )
    group.obj_set_defaults()
    found = demand_of(ports=[group])
    assert dict(found.amounts)['CUSTOM_NIC'] == 2
    assert found.required == {'T'}


def test_required_hosts_and_zones_are_read():
    there = objects.Destination(host='h1', aggregates=[f'{U[1]},{U[2]}', U[3]])
    found = demand_of(zone='z1', requested_destination=there)
    assert (found.zone, found.host) == ('z1', 'h1')
    assert found.aggregates == (frozenset({U[1], U[2]}), frozenset({U[3]}))


def test_a_forced_host_binds_a_build_and_not_an_unshelve():
    spec = nova_casts.spec(filters={'force_hosts': ['h1']})
    assert parser.parse_message(nova_casts.build([spec])).demand.host == 'h1'
    assert parser.parse_message(nova_casts.unshelve(spec)).demand.host == ''


@pytest.mark.parametrize(
    ('policy', 'rules', 'expected'),
    [
        ('affinity', {}, (request.Rule.TOGETHER, 1)),
        ('anti-affinity', {}, (request.Rule.APART, 1)),
        (
            'anti-affinity',
            {'max_server_per_host': 3},
            (request.Rule.APART, 3),
        ),
        ('soft-affinity', {}, None),
    ],
)
def test_only_strict_policies_make_a_server_group(policy, rules, expected):
    spec = nova_casts.spec(group=nova_casts.group(policy, **rules))
    group = parser.parse_message(nova_casts.build([spec])).group
    assert (group and (group.rule, group.per_host)) == expected


def test_a_number_of_thousands_of_digits_is_capped():
    def change(message):
        spec = first_spec(message)
        group = nova_casts.group('anti-affinity', max_server_per_host=3)
        spec['instance_group'] = group.obj_to_primitive()
        data = spec['instance_group']['nova_object.data']
        data['_rules']['max_server_per_host'] = '9' * 5000
        spec['flavor']['nova_object.data'].update(
            extra_specs={
                'hw:cpu_policy': 'mixed',
                'hw:cpu_realtime_mask': f'0-{"9" * 5000}',
            }
        )

    group = parser.parse_message(changed_build(change)).group
    assert group.per_host == 2**31 - 1


def test_every_unshelve_of_a_server_is_a_request_of_its_own():
    spec = nova_casts.spec()
    built = parser.parse_message(nova_casts.build([spec]))
    one = nova_casts.unshelve(spec)
    other = dataclasses.replace(one, uuid='d' * 32)
    uuids = {parser.parse_message(each).uuid for each in (one, other)}
    assert len({built.uuid, *uuids}) == 3
    assert parser.parse_message(one).uuid in uuids
    assert parser.parse_message(one).servers == (U[0],)
    assert parser.parse_message(one).origin is request.Origin.UNSHELVE
    assert parser.parse_message(one).demand == built.demand


def test_a_server_that_is_still_on_its_host_needs_no_room():
    found = parser.parse_message(nova_casts.unshelve(None, state='shelved'))
    assert found.demand == request.Demand(())
    assert found.keeps_room


def test_a_server_that_is_still_on_its_host_keeps_its_end():
    may = times.RequestLimits(3600.0, 7200.0)
    kept = nova_casts.unshelve(None, state='shelved')
    assert parser.parse_message(kept, lambda *_: may).time_limit_s is None


def _spec_data(**more):
    return lambda message: first_spec(message).update(more)


BROKEN = {
    'a version of the interface': lambda m: m.update(version='2.0'),
    'no version': lambda m: m.pop('version'),
    'another method': lambda m: m.update(method='rebuild_instance'),
    'no arguments': lambda m: m.pop('args'),
    'arguments that are none': lambda m: m.update(args=[1]),
    'no specs': lambda m: m['args'].update(request_specs=[]),
    'specs that are none': lambda m: m['args'].update(request_specs='x'),
    'a spec that is none': lambda m: m['args'].update(request_specs=[7]),
    'a version of an object': lambda m: m['args']['request_specs'][0].update(
        {'nova_object.version': '2.0'}
    ),
    'an object without fields': lambda m: m['args']['request_specs'][0].pop(
        'nova_object.data'
    ),
    'a server twice': lambda m: m['args']['request_specs'].append(
        m['args']['request_specs'][0]
    ),
    'no project': _spec_data(project_id=None),
    'a project that is none': _spec_data(project_id={'secret': 1}),
    'a long user': _spec_data(user_id='secret' * 99),
    'a user that no database keeps': _spec_data(user_id='secret\0'),
    'half a character': _spec_data(user_id='secret\ud800'),
    'no server': _spec_data(instance_uuid='secret'),
    'no flavor': _spec_data(flavor=None),
    'a zone that is none': _spec_data(availability_zone=['secret']),
    'a host that is none': _spec_data(force_hosts=[{'secret': 1}]),
    'groups that are none': _spec_data(requested_resources={'secret': 1}),
    'fewer than no VCPUs': lambda m: first_spec(m)['flavor'][
        'nova_object.data'
    ].update(vcpus=-1),
    'too much memory': lambda m: first_spec(m)['flavor'][
        'nova_object.data'
    ].update(memory_mb=2**31),
    'a mask that is none': lambda m: first_spec(m)['flavor'][
        'nova_object.data'
    ].update(
        extra_specs={
            'hw:cpu_policy': 'mixed',
            'hw:cpu_dedicated_mask': 'secret',
        }
    ),
}


@pytest.mark.parametrize('change', BROKEN.values(), ids=BROKEN)
def test_an_unreadable_cast_is_refused_without_showing_it(change):
    cast = changed_build(change)
    with pytest.raises(exception.Unreadable) as caught:
        parser.parse_message(cast)
    assert 'secret' not in str(caught.value)


def test_servers_with_different_flavors_are_no_single_request():
    specs = [nova_casts.spec(U[0]), nova_casts.spec(U[1], zone='z')]
    with pytest.raises(exception.Unreadable, match='must have the same owner'):
        parser.parse_message(nova_casts.build(specs))


def test_the_sender_of_an_unreadable_cast_is_known_where_possible():
    found = parser.placeholder_request(changed_build(BROKEN['no specs']))
    assert (found.project, found.user) == ('the-project', 'the-user')
    assert found.demand == request.Demand(())
    assert found.servers == (found.uuid,)
    torn = nova_casts.held(b'{', 'unshelve_instance', 'e' * 64)
    assert parser.placeholder_request(torn).project == ''
    assert parser.placeholder_request(torn).origin is request.Origin.UNSHELVE
    assert parser.placeholder_request(torn).uuid != found.uuid


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def _places(value, path=()):
    yield path
    inner = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, each in inner:
        yield from _places(each, (*path, key))


def _message():
    group = nova_casts.group(max_server_per_host=2)
    there = objects.Destination(host='h1', aggregates=[U[3]])
    spec = nova_casts.spec(group=group, requested_destination=there)
    return json.loads(
        json.loads(nova_casts.build([spec]).body)['oslo.message']
    )


WHOLE = _message()
PLACES = [each for each in _places(WHOLE) if each]


@hypothesis.given(st.sampled_from(PLACES), values)
def test_any_change_of_a_cast_gives_a_request_or_a_reason(place, value):
    message = json.loads(json.dumps(WHOLE))
    holder = message
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    body = {'oslo.version': '2.0', 'oslo.message': json.dumps(message)}
    cast = nova_casts.held(json.dumps(body).encode())
    try:
        found = parser.parse_message(cast)
    except exception.Unreadable:
        found = parser.placeholder_request(cast)
    assert found.servers
    assert all(amount > 0 for _, amount in found.demand.amounts)


@hypothesis.given(st.binary())
def test_any_random_bytes_are_refused_with_a_reason(body):
    cast = nova_casts.held(body)
    with pytest.raises(exception.Unreadable):
        parser.parse_message(cast)
    assert parser.placeholder_request(cast).servers


def test_the_token_is_found_and_shown_by_nothing_else():
    cast = nova_casts.build([nova_casts.spec()])
    assert parser.user_token(cast) == 'a secret token'
    assert 'secret' not in repr(parser.parse_message(cast))
    torn = dataclasses.replace(cast, body=b'{')
    assert parser.user_token(torn) == ''


def wishing(metadata=(), hints=(), unshelved=False):
    """A message of a user who says how long."""
    spec = nova_casts.spec(scheduler_hints=dict(hints))
    instance = objects.Instance(
        uuid=U[0], project_id='the-project', user_id='the-user',
        vm_state='shelved_offloaded', flavor=nova_casts.flavor(),
        metadata=dict(metadata),
    )  # fmt: skip
    if unshelved:
        return nova_casts.written(
            'unshelve_instance',
            '1.20',
            {'instance': instance, 'request_spec': spec},
        )
    build = objects.BuildRequest(instance_uuid=U[0], instance=instance)
    return nova_casts.build([spec], build_requests=[build])


@pytest.mark.parametrize('unshelved', [False, True])
@pytest.mark.parametrize(
    ('metadata', 'hints', 'limit_s'),
    [
        ({}, {}, 3600.0),
        ({'fairness:time_limit': '30m'}, {}, 1800.0),
        ({'fairness:time_limit': '2h'}, {}, 3600.0),
        ({}, {'fairness_time_limit': ['600']}, 600.0),
        ({'fairness:time_limit': '1m'}, {'fairness_time_limit': ['2m']}, 60.0),
        # A wish that cannot be read is none.
        ({'fairness:time_limit': 'soon'}, {}, 3600.0),
        ({'fairness:time_limit': '0'}, {'fairness_time_limit': []}, 3600.0),
        ({'other': '1m'}, {'fairness_time_limit': ['', 'x']}, 3600.0),
    ],
)
def test_a_requested_time_limit_is_bounded_by_the_maximum(
    metadata, hints, limit_s, unshelved
):
    may = times.RequestLimits(3600.0, 7200.0)
    cast = wishing(metadata, hints, unshelved)
    assert parser.parse_message(cast, lambda *_: may).time_limit_s == limit_s


def test_users_limit_how_long_a_build_may_wait():
    cast = wishing({'fairness:longest_wait': '1m'})
    assert parser.parse_message(cast).expires_at == 160.0
    assert parser.parse_message(wishing()).expires_at is None
    assert parser.parse_message(wishing(unshelved=True)).expires_at is None
