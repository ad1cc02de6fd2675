# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What owners are told is what the numbers say."""

import dataclasses
import itertools

import pytest

from nova_fairness.agent import advice

CLAIM = advice.Claim(
    resource='cpu_time',
    part=1.4,
    contended=True,
    waiting=True,
    weight=0.6,
    smallest=0.22,
    steered=True,
)
CASE = advice.Case(
    entity='user',
    enforced=True,
    exempt=False,
    claims=(CLAIM,),
    vcpus_used=0.5,
    heaviest='memory',
    preference=1.0,
)


def said(claim=None, **case):
    claims = (dataclasses.replace(CLAIM, **(claim or {})),)
    return advice.sentences(dataclasses.replace(CASE, claims=claims, **case))


TABLE = {
    'more than its part': (
        {},
        {},
        (
            'Your VMs use 1.4 times your part of cpu_time, for which VMs '
            'compete on this node: this VM stands back (weight 0.60, 1 is '
            'neutral). Use less cpu_time here or in the other VMs, and it '
            'will be served more.'
        ),
    ),
    'more than its part, of a project': (
        {},
        {'entity': 'project'},
        (
            "Your project's VMs use 1.4 times its part of cpu_time, for "
            'which VMs compete on this node: this VM stands back (weight '
            '0.60, 1 is neutral). Use less cpu_time here or in the other '
            'VMs, and it will be served more.'
        ),
    ),
    'more than its part, and not yet less': (
        {'weight': 1.0, 'part': 12.4},
        {},
        (
            'Your VMs use 12 times your part of cpu_time, for which VMs '
            'compete on this node; the weight of this VM is 1.00 (1 is '
            'neutral) and may fall until they use less of it.'
        ),
    ),
    'at the end': (
        {'weight': 0.22},
        {},
        (
            'Your VMs use 1.4 times your part of cpu_time, for which VMs '
            'compete on this node: this VM stands back (weight 0.22, 1 is '
            'neutral, the smallest that is allowed). Use less cpu_time here '
            'or in the other VMs, and it will be served more.'
        ),
    ),
    'less than its part': (
        {'part': 0.04, 'weight': 1.8},
        {},
        (
            'This VM competes with others for cpu_time, and is served '
            'before heavier ones (weight 1.80, 1 is neutral): your VMs use '
            '0.04 times your part of it.'
        ),
    ),
    'as others': (
        {'part': 1.0, 'weight': 1.0},
        {},
        (
            'This VM competes with others for cpu_time, and is served as '
            'others of its size are.'
        ),
    ),
    'heavy by something else': (
        {'part': 0.9},
        {},
        (
            'This VM competes with others for cpu_time and stands back '
            '(weight 0.60, 1 is neutral), because your VMs are heavy as a '
            'whole, most of all by memory: use less of that.'
        ),
    ),
    'not preferred': (
        {'part': 0.9},
        {'preference': 0.5},
        (
            'This VM competes with others for cpu_time and stands back '
            '(weight 0.60, 1 is neutral), because its owner preferred other '
            'VMs (preference 0.5).'
        ),
    ),
    'for no known reason': (
        {'part': None},
        {'heaviest': ''},
        (
            'This VM competes with others for cpu_time and stands back '
            '(weight 0.60, 1 is neutral).'
        ),
    ),
    'not waiting': (
        {'waiting': False},
        {},
        (
            'VMs on this node compete for cpu_time, but this VM does not wait '
            'for it.'
        ),
    ),
    'not steered': (
        {'steered': False},
        {},
        (
            'This VM competes with others for cpu_time, which cannot be '
            'steered for it on this node: its weight has no effect.'
        ),
    ),
    'a place in a range': (
        {},
        {'places': True},
        (
            'This VM competes with others for cpu_time. Its weight is a '
            'place in a range: 0.60, where 0 is least and 1 is most service.'
        ),
    ),
    'nobody competes': (
        {'contended': False, 'waiting': False},
        {},
        (
            'VMs compete for nothing on this node at the moment, so fair '
            'sharing makes this VM neither faster nor slower.'
        ),
    ),
    'exempt': (
        {},
        {'exempt': True, 'enforced': False, 'vcpus_used': 1.0},
        (
            'An operator exempted this VM: its weights are not written, and '
            'it gets what it would get without fair sharing.'
        ),
    ),
}


@pytest.mark.parametrize(
    ('claim', 'case', 'expected'), TABLE.values(), ids=list(TABLE)
)
def test_there_is_one_sentence_for_it(claim, case, expected):
    assert said(claim, **case) == [expected]


def test_a_limit_of_the_flavor_is_not_blamed_on_others():
    nobody, limit = said({'contended': False})
    assert nobody.startswith('VMs compete for nothing')
    assert limit == (
        'This VM waits for cpu_time, but not because of other VMs: a limit of '
        'its flavor or the device itself holds it back.'
    )


def test_a_vm_that_does_all_it_can_is_told_so():
    assert said(vcpus_used=0.97)[-1] == (
        'This VM uses all that its vCPUs can do: with more of them it could '
        'use more.'
    )
    assert len(said(vcpus_used=0.9)) == 1


def test_weights_that_are_not_in_force_are_named_first():
    first, _ = said(enforced=False)
    assert first.startswith('Weights are not in force on this node')


def test_every_case_has_sentences_and_none_names_a_number_of_others():
    flags = (True, False)
    for contended, waiting, steered, exempt, part, weight in itertools.product(
        flags, flags, flags, flags, (None, 0.0, 1.0, 40.0), (0.2, 1.0, 4.0)
    ):
        told = said(
            {
                'contended': contended,
                'waiting': waiting,
                'steered': steered,
                'part': part,
                'weight': weight,
            },
            exempt=exempt,
        )
        assert told
        assert all(text.endswith('.') and '  ' not in text for text in told)
