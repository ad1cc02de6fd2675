# SPDX-License-Identifier: Apache-2.0

"""Building an agent where something is missing."""

from oslo_config import cfg
import pytest

from nova_fairness import exception
from nova_fairness.agent import assembly
from nova_fairness.agent.steering import controls
from nova_fairness.apply.cgroup import control
from nova_fairness.conf import opts
from nova_fairness.model import resources


@pytest.fixture
def site(tmp_path):
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('state_path', str(tmp_path), group='fairness')
    return assembly._site(conf, {})


@pytest.fixture
def built(site):
    """Builds the controls of this host; closes what was built."""
    made = []

    def build():
        made.append(controls.build_controls(site))
        return made[-1]

    yield build
    for item in made:
        item.close()


def test_a_kernel_without_one_control_uses_the_remaining_controls(
    monkeypatch, caplog, built
):
    def missing(*arguments):
        raise exception.ControlUnavailable('no cpu controller is mounted')

    first = built()
    first.close()
    whole = {item.kind for item in first.built}
    monkeypatch.setattr(control, 'CpuShares', missing)
    made = built()
    kinds = {item.kind for item in made.built}
    assert kinds == whole - {resources.ResourceControl.CPU} == set(made.scales)
    assert made.missing[resources.ResourceControl.CPU] == (
        'no cpu controller is mounted'
    )
    assert 'cpu is measured and not steered: no cpu' in caplog.text


def test_each_control_is_built_once(built):
    kinds = [item.kind for item in built().built]
    assert len(kinds) == len(set(kinds)) > 0


@pytest.mark.parametrize(('content', 'is_whole'), [(None, True), ('[', False)])
def test_a_lost_record_is_distinguished_from_an_empty_record(
    tmp_path, caplog, content, is_whole
):
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('state_path', str(tmp_path), group='fairness')
    if content is not None:
        (tmp_path / 'found.json').write_text(content)
    found, told = assembly.open_record(conf)
    found.close()
    assert told == is_whole
    assert ('corrupt-1' in caplog.text) == (not is_whole)
