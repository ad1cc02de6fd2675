# SPDX-License-Identifier: Apache-2.0

import pytest

from nova_fairness.apply import privileged
from nova_fairness.apply import privileged_network
from nova_fairness.cmd import known_options
from nova_fairness.conf import file_faults
from nova_fairness.conf import opts


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / 'a.conf'
        path.write_text(text)
        return [str(path)]

    return written


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('[fairness]\nenttity = project\n', 'enttity of [fairness]'),
        ('[fairness]\nenttity = project\n', 'did you mean entity?'),
        ('[fairness_exchnge]\ndomain = x\n', 'did you mean fairness_exchange'),
        ('[fairness_cluster]\nhalflife = 1\n', 'did you mean half_life?'),
        ('[oslo_messaging_zmq]\nkey_dirs = x\n', '[oslo_messaging_zmq]'),
        ('[fairness_api]\nxyzzy = x\n', 'has no effect'),
        ('[Fairness]\nenttity = project\n', 'did you mean entity?'),
        ('[FAIRNESS_exchnge]\nx = x\n', 'did you mean fairness_exchange'),
        (
            '[nova_fairness_privileged]\nhelper_comand = x\n',
            'did you mean helper_command?',
        ),
        (
            '[nova_fairness_privileged_network]\nxyzzy = x\n',
            'has no effect',
        ),
        (
            '[nova_fairness_privilegd]\nuser = x\n',
            'did you mean nova_fairness_privileged?',
        ),
        ('[oslo_messaging_zmqq]\nx = x\n', 'did you mean oslo_messaging_zmq'),
    ],
)
def test_an_option_that_does_not_exist_is_named(write, text, said):
    (found,) = known_options.describe_unknown_options(write(text))
    assert said in found


def test_every_option_of_this_product_is_known(write):
    listed = {}
    for group, options in opts.list_opts():
        name = getattr(group, 'name', 'DEFAULT')
        listed[name] = [each.dest for each in options]
    text = ''.join(
        f'[{name}]\n' + ''.join(f'{each} = 1\n' for each in options)
        for name, options in listed.items()
    )
    assert known_options.describe_unknown_options(write(text)) == []
    assert (
        known_options.describe_unknown_options(write(text.replace('_', '-')))
        != []
    )


def test_options_of_the_helpers_are_known(write):
    sections = (privileged.SECTION, privileged_network.SECTION)
    assert sections == known_options.HELPERS
    text = ''.join(
        f'[{section}]\nhelper_command = x\nuser = x\ncapabilities = 1\n'
        for section in sections
    )
    assert known_options.describe_unknown_options(write(text)) == []
    assert known_options.describe_unknown_options(write(text.upper())) != []
    text = '[FAIRNESS]\nentity = user\n[Fairness]\nenforce = true\n'
    assert known_options.describe_unknown_options(write(text)) == []


def test_sections_of_others_are_not_looked_at(write):
    text = '[DEFAULT]\nfoo = 1\n[nova]\nbar = 1\n[placement]\nx = 1\n'
    assert known_options.describe_unknown_options(write(text)) == []
    assert known_options.describe_unknown_options(['/nowhere/a.conf']) == []


@pytest.mark.parametrize('text', ['[fairness\nx', '\x00', 'x = 1\n'])
def test_a_file_that_cannot_be_parsed_is_left_to_its_reader(write, text):
    assert known_options.describe_unknown_options(write(text)) == []


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('[fairness]\ninterval = lots\n', ['[fairness] interval: invalid']),
        ('[fairness]\ninterval = 5\n', []),
        (
            '[fairness]\ninterval = -1\nentity = planet\n',
            ['[fairness] entity: invalid', '[fairness] interval: invalid'],
        ),
    ],
)
def test_a_value_that_the_next_start_refuses_is_named(write, text, expected):
    found = file_faults.invalid_values(write(text), opts.list_opts())
    assert len(found) == len(expected)
    for each in expected:
        assert any(sentence.startswith(each) for sentence in found)
