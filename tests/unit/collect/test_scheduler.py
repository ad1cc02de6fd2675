# SPDX-License-Identifier: Apache-2.0

"""Which scheduler replaces that of the kernel."""

import pytest

from nova_fairness.collect import scheduler


@pytest.mark.parametrize(
    ('files', 'name'),
    [
        ({}, ''),
        ({'state': 'disabled\n'}, ''),
        ({'state': 'enabled\n', 'root/ops': 'simple\n'}, 'simple'),
        ({'state': 'enabled\n', 'root/ops': 'a\x1bb\n'}, 'a?b'),
        ({'state': 'enabled\n'}, ''),
    ],
)
def test_a_scheduler_is_named_while_it_runs(tmp_path, files, name):
    for file, text in files.items():
        path = tmp_path / 'kernel/sched_ext' / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert scheduler.sched_ext_name(str(tmp_path)) == name


def test_the_scheduler_of_this_machine_is_readable():
    assert isinstance(scheduler.sched_ext_name(), str)
