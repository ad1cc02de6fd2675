# SPDX-License-Identifier: Apache-2.0

"""What is read of a cast is what Nova's own scheduler will ask for."""

import hypothesis
from hypothesis import strategies as st
from nova.scheduler import utils as nova_rules

from nova_fairness.cluster.messages import parser
from tests.fixtures import nova_casts

extra_specs = st.fixed_dictionaries(
    {},
    optional={
        'resources:VCPU': st.sampled_from(['0', '1', '4']),
        'resources:PCPU': st.just('4'),
        'resources:MEMORY_MB': st.just('64'),
        'resources:MEM_ENCRYPTION_CONTEXT': st.just('3'),
        'resources:DISK_GB': st.just('0'),
        'resources:CUSTOM_X': st.sampled_from(['1', 'none']),
        'resources1:VGPU': st.just('2'),
        'resources_A:CUSTOM_X': st.just('3'),
        'trait:T1': st.sampled_from(['required', 'forbidden', 'other']),
        'trait1:T2': st.just('required'),
        'hw:pmem': st.sampled_from(['4GB', '4GB, 4GB,small-one']),
        'os:secure_boot': st.sampled_from(['required', 'optional']),
        'hw:pci_numa_affinity_policy': st.just('socket'),
        'hw:maxphysaddr_mode': st.sampled_from(['emulate', 'passthrough']),
        'quota:cpu_shares': st.just('512'),
    },
)

pinning = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {'hw:cpu_policy': st.sampled_from(['shared', 'dedicated'])},
        optional={
            'hw:cpu_thread_policy': st.sampled_from(
                ['prefer', 'isolate', 'require']
            ),
        },
    ).filter(
        lambda found: (
            found['hw:cpu_policy'] == 'dedicated' or len(found) == 1
        )
    ),
    st.just(
        {
            'hw:cpu_policy': 'dedicated',
            'hw:emulator_threads_policy': 'isolate',
        }
    ),
    st.fixed_dictionaries(
        {
            'hw:cpu_policy': st.just('mixed'),
            'hw:cpu_dedicated_mask': st.sampled_from(['0', '1-2', '^0,^2']),
        }
    ),
    st.just({'hw:cpu_policy': 'mixed', 'hw:cpu_realtime_mask': '^0-1',
             'hw:cpu_realtime': 'yes'}),
    st.just({'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '2-3',
             'hw:emulator_threads_policy': 'isolate',
             'hw:cpu_thread_policy': 'isolate'}),
)  # fmt: skip

images = st.fixed_dictionaries(
    {},
    optional={
        'traits_required': st.just(['T3', 'T4']),
        'hw_cpu_policy': st.sampled_from(['shared', 'dedicated']),
        'hw_cpu_thread_policy': st.sampled_from(['isolate', 'require']),
    },
)


def spec_of(extra, pinned, image, **more):
    """A specification that Nova's API would take."""
    image = {**image}
    if pinned:
        extra = {
            key: value
            for key, value in extra.items()
            if key not in ('resources:VCPU', 'resources:PCPU')
        }
    if pinned:
        image.pop('hw_cpu_policy', None)
        image.pop('hw_cpu_thread_policy', None)
    if image.get('hw_cpu_policy') == 'dedicated':
        extra.pop('resources:VCPU', None)
        extra.pop('resources:PCPU', None)
    else:
        image.pop('hw_cpu_thread_policy', None)
    flavor = nova_casts.flavor(
        vcpus=4, swap=more.pop('swap', 0), extra_specs={**extra, **pinned}
    )
    return nova_casts.spec(made_of=flavor, image=image.items(), **more)


def check(way, asked):
    assert dict(way.amounts) == asked.merged_resources()
    assert way.required == asked.all_required_traits
    plain = asked.get_request_group(None)
    assert way.forbidden == plain.forbidden_traits


@hypothesis.settings(deadline=None)
@hypothesis.given(
    extra_specs, pinning, images, st.integers(0, 2000), st.booleans()
)
def test_a_demand_equals_the_query_of_nova_to_placement(
    extra, pinned, image, swap, is_bfv
):
    spec = spec_of(dict(extra), pinned, image, swap=swap, is_bfv=is_bfv)
    asked = nova_rules.ResourceRequest.from_request_spec(spec)
    found = parser.parse_message(nova_casts.build([spec])).demand
    first, *others = found.alternatives
    check(first, asked)
    # The scheduler asks again where this is so; see its manager.
    assert bool(others) == asked.cpu_pinning_requested
    for second in others:
        unpinned = nova_rules.ResourceRequest.from_request_spec(
            spec, enable_pinning_translate=False
        )
        check(second, unpinned)
        assert second.without == {'PCPU'}
        assert second.zone == first.zone
        assert second.alternatives == (second,)
