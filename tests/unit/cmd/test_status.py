# SPDX-License-Identifier: Apache-2.0


"""``nova-fairness-status`` says what is wrong, and what was expected."""

import json
import os
import pathlib
import types

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import pytest

from nova_fairness import exception
from nova_fairness.cmd import keys as keys_command
from nova_fairness.cmd import status
from nova_fairness.cmd import status_cloud
from nova_fairness.cmd import status_effect
from nova_fairness.cmd import status_node
from nova_fairness.cmd import status_results
from nova_fairness.collect import block_devices
from nova_fairness.conf import opts
from nova_fairness.model import instance
from nova_fairness.model import pressure
from nova_fairness.nova_service import releases

TOP = pathlib.Path(__file__).resolve().parents[3]
PASTE = TOP / 'tests' / 'data' / 'devstack' / 'api-paste.ini'
FILTER = f'\n[filter:fair]\npaste.filter_factory = {status_cloud.FACTORY}\n'
SUCCESS, WARNING, FAILURE = upgradecheck.Code
URL = 'zmq+redis://:hidden@127.0.0.1:1/0'


def configuration(tmp_path, text=''):
    path = tmp_path / 'agent.conf'
    path.write_text(text)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf.register_cli_opts(status._OPTIONS)
    conf([], project='test', default_config_files=[str(path)])
    return conf


def checked(check, tmp_path, text=''):
    result = status_results.run(check, configuration(tmp_path, text))
    return result.code, result.details


def test_a_check_that_stumbles_is_a_failure_with_the_reason(tmp_path):
    def stumble(_):
        raise exception.StateError('because of this')

    assert checked(stumble, tmp_path) == (FAILURE, 'because of this')


@pytest.mark.parametrize(
    ('text', 'code', 'said'),
    [
        ('', SUCCESS, 'metric DominantShareMetric, policy foresight'),
        (
            '[fairness]\nmetric = GreedinessMetric\n',
            WARNING,
            'metric GreedinessMetric with policy foresight can leave users',
        ),
        ('[fairness]\nmetric = NoSuch\n', FAILURE, 'NoSuch'),
        (
            '[fairness]\nshadow_metric = UniformMetric\n',
            SUCCESS,
            'shadow metric UniformMetric',
        ),
        (
            '[fairness]\nshadow_metric = NoSuch\n',
            WARNING,
            "[fairness] shadow_metric: no metric 'NoSuch'; installed: ",
        ),
        ('[fairness]\ninterval = 0\n', FAILURE, 'interval'),
    ],
)
def test_the_configuration_is_read_and_its_plugins_loaded(
    tmp_path, text, code, said
):
    found, details = checked(status_node.check_configuration, tmp_path, text)
    assert found == code
    assert said in details


def test_a_state_directory_is_there_or_can_be_made(tmp_path):
    for path in (tmp_path, tmp_path / 'not' / 'yet'):
        text = f'[fairness]\nstate_path = {path}\n'
        code, details = checked(status_node.check_state, tmp_path, text)
        assert code == SUCCESS, details
    (tmp_path / 'file').write_text('')
    text = f'[fairness]\nstate_path = {tmp_path}/file\n'
    code, details = checked(status_node.check_state, tmp_path, text)
    assert code == FAILURE
    assert 'set a directory' in details


def test_libvirt_answers_or_does_not(tmp_path):
    text = '[fairness]\nconnection_uri = test:///default\n'
    code, details = checked(status_node.check_libvirt, tmp_path, text)
    assert (code, details) == (
        SUCCESS,
        'test:///default answers; 1 domain runs',
    )
    text = f'[fairness]\nconnection_uri = test://{tmp_path}/none.xml\n'
    code, details = checked(status_node.check_libvirt, tmp_path, text)
    assert code == FAILURE
    assert 'does not answer' in details


def test_domains_without_an_owner_are_named(tmp_path):
    text = '[fairness]\nconnection_uri = test:///default\n'
    code, details = checked(status_node.check_owners, tmp_path, text)
    assert code == WARNING
    assert 'domains test:' in details
    owners = tmp_path / 'owners.json'
    owners.write_text('{"test": {"user": "u", "project": "p"}}')
    text += f'owners_file = {owners}\n'
    code, details = checked(status_node.check_owners, tmp_path, text)
    assert (code, details) == (
        SUCCESS,
        'all owners of 1 domain are known',
    )


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with cgroup v2 and these controllers."""

    def make(controllers, flags=0):
        (tmp_path / 'cgroup.controllers').write_text(controllers)
        mountinfo = tmp_path / 'mountinfo'
        mountinfo.write_text(
            f'30 20 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n'
        )
        monkeypatch.setattr(status_node, '_MOUNTINFO', str(mountinfo))
        monkeypatch.setattr(
            os, 'statvfs', lambda _: types.SimpleNamespace(f_flag=flags)
        )

    return make


@pytest.mark.parametrize(
    ('controllers', 'flags', 'code', 'said'),
    [
        ('cpu memory io', 0, SUCCESS, 'cgroup v2; cpu: cpu.weight'),
        ('cpu io', 0, WARNING, 'not available: memory: '),
        ('pids', 0, FAILURE, 'no CPU controller is mounted'),
        ('cpu memory io', os.ST_RDONLY, FAILURE, 'is mounted read-only'),
    ],
)
def test_control_groups_are_found_and_writable(
    host, tmp_path, controllers, flags, code, said
):
    host(controllers, flags)
    found, details = checked(status_node.check_control_groups, tmp_path)
    assert (found, said in details) == (code, True), details


class FakeBlockDevices(block_devices.BlockDevices):
    """A disk is on the device that has the name of its file."""

    def __init__(self, **schedulers):
        super().__init__()
        self._schedulers = schedulers

    def devices_of(self, path):
        return (path,)

    def totals(self, number, cost_model=False):
        scheduler = self._schedulers.get(number)
        return scheduler and pressure.DeviceTotals(number, scheduler)


def with_disk(source):
    disk = instance.Disk('vda', source)
    return instance.Instance('uuid', 'vm', 1, 1 << 30, disks=(disk,))


@pytest.mark.parametrize(
    ('sources', 'expected'),
    [
        ((), (True, 'io.bfq.weight or io.weight')),
        (('sda',), (True, 'io.bfq.weight')),
        (('sdb',), (False, 'without effect: device sdb uses mq-deadline')),
        (
            ('sda', 'sdb', 'sdb'),
            (
                True,
                'io.bfq.weight; without effect: device sdb uses mq-deadline',
            ),
        ),
        (
            ('gone',),
            (
                False,
                'without effect: disk vda is on no block device of this node',
            ),
        ),
    ],
)
def test_disks_are_steered_where_their_device_keeps_weights(
    host, sources, expected
):
    host('cpu memory io')
    found = status_node.check_disks(
        [with_disk(source) for source in sources],
        status_node._MOUNTINFO,
        FakeBlockDevices(sda='bfq', sdb='mq-deadline'),
    )
    assert found == expected


def test_disks_without_weights_are_a_warning(host, tmp_path):
    host('cpu memory io')
    domains = tmp_path / 'node.xml'
    domains.write_text(
        '<node><domain type="test"><name>a</name><vcpu>1</vcpu>'
        '<uuid>00000000-0000-4000-8000-000000000001</uuid>'
        '<memory>1024</memory><os><type>hvm</type></os><devices>'
        '<disk type="network"><source protocol="rbd" name="p/v"/>'
        '<target dev="vda"/></disk></devices></domain></node>'
    )
    text = f'[fairness]\nconnection_uri = test://{domains}\n'
    code, details = checked(status_node.check_control_groups, tmp_path, text)
    assert code == WARNING
    said = 'blkio: without effect: disk vda is on no block device'
    assert said in details


def test_an_unsteered_control_is_not_looked_for(host, tmp_path):
    host('pids')
    text = '[fairness]\ncontrols = network\n'
    assert (
        checked(status_node.check_control_groups, tmp_path, text)[0] == SUCCESS
    )
    text = '[fairness]\ncontrols = cpu\n'
    code, details = checked(status_node.check_traffic_control, tmp_path, text)
    assert (code, details) == (
        SUCCESS,
        '[fairness] controls does not name network',
    )


def test_traffic_control_tells_its_version_or_missing_parts(
    tmp_path, monkeypatch
):
    code, details = checked(status_node.check_traffic_control, tmp_path)
    assert code == SUCCESS
    assert 'iproute2' in details
    monkeypatch.setattr(status_node, '_PATH', str(tmp_path))
    code, details = checked(status_node.check_traffic_control, tmp_path)
    assert code == FAILURE
    assert 'install the package iproute2' in details


def test_privileges_are_tried_by_root_only(tmp_path, monkeypatch):
    knocked = []
    prepare = lambda files: knocked.append('prepared')  # noqa: E731
    monkeypatch.setattr(
        status_node.controls_module, 'prepare_helpers', prepare
    )
    monkeypatch.setattr(
        status_node.privileged.client,
        'start',
        lambda: knocked.append('knocked'),
    )
    monkeypatch.setattr(os, 'geteuid', lambda: 1000)
    assert checked(status_node.check_privileges, tmp_path)[0] == WARNING
    assert knocked == []
    monkeypatch.setattr(os, 'geteuid', lambda: 0)
    assert checked(status_node.check_privileges, tmp_path)[0] == SUCCESS
    assert knocked == ['prepared', 'knocked']


def test_a_service_of_nova_needs_the_configuration_of_nova(tmp_path):
    none = f'config_files = {tmp_path}/none.conf\n'
    code, details = checked(
        status_node.check_nova_service, tmp_path, f'[fairness_nova]\n{none}'
    )
    assert code == SUCCESS
    assert 'the agent runs stand-alone: ' in details
    code, details = checked(
        status_node.check_nova_service,
        tmp_path,
        f'[fairness_nova]\nservice = on\n{none}',
    )
    assert code == FAILURE
    assert 'service = on' in details


@pytest.mark.parametrize(
    ('url', 'code', 'said'),
    [
        ('', WARNING, 'compares only its own users'),
        ('rabbit://u:p@h:5672//', SUCCESS, 'rabbit:// needs no Redis'),
        (URL, FAILURE, 'Redis at 127.0.0.1:1: '),
        ('zmq+redis://h:70000/0', FAILURE, ''),
    ],
)
def test_the_transport_is_reached_or_named(tmp_path, url, code, said):
    text = f'[DEFAULT]\ntransport_url = {url}\n'
    found, details = checked(
        status_cloud.check_message_transport, tmp_path, text
    )
    assert (found, said in details) == (code, True), details
    assert 'hidden' not in details


@pytest.fixture
def keys_text(tmp_path, capsys):
    """Text of a configuration with keys of these names and roles."""

    def make(*pairs):
        place = tmp_path / 'keys'
        for name, role in pairs:
            code = keys_command.main(
                ['--directory', str(place), 'make', name, '--role', role]
            )
            assert code == 0
        capsys.readouterr()
        return (
            f'[DEFAULT]\ntransport_url = {URL}\n[fairness]\nhost = n1\n'
            f'[oslo_messaging_zmq]\nkeys_path = {place}\n'
        )

    return make


@pytest.mark.parametrize(
    ('name', 'role', 'code', 'said'),
    [
        ('n1', 'node', SUCCESS, 'n1 is on the allow-list as node'),
        ('ctl', 'controller', SUCCESS, 'as controller'),
        ('n2', 'node', FAILURE, 'expected the key of [fairness] host, n1'),
    ],
)
def test_the_key_is_that_of_the_node(
    keys_text, tmp_path, name, role, code, said
):
    text = keys_text((name, role))
    found, details = checked(status_cloud.check_keys, tmp_path, text)
    assert (found, said in details) == (code, True), details


def test_a_controller_whose_key_cannot_sign_is_warned(keys_text, tmp_path):
    text = keys_text(('ctl', 'controller'))
    path = tmp_path / 'keys' / 'allowed.json'
    document = json.loads(path.read_text())
    del document['keys'][0]['signs']
    path.write_text(json.dumps(document))
    code, details = checked(status_cloud.check_keys, tmp_path, text)
    assert code == WARNING
    assert 'nova-fairness-keys rotate ctl' in details


def test_a_key_that_is_revoked_or_open_to_others_is_a_failure(
    keys_text, tmp_path, capsys
):
    text = keys_text(('n1', 'node'))
    secret = tmp_path / 'keys' / 'n1.secret'
    secret.chmod(0o644)
    code, details = checked(status_cloud.check_keys, tmp_path, text)
    assert code == FAILURE
    assert 'can be read by others' in details
    secret.chmod(0o600)
    directory = str(tmp_path / 'keys')
    keys_command.main(['--directory', directory, 'revoke', 'n1'])
    code, details = checked(status_cloud.check_keys, tmp_path, text)
    assert code == FAILURE
    assert 'was revoked' in details


@pytest.mark.parametrize(
    ('text', 'code', 'said'),
    [
        ('', SUCCESS, 'keys are not needed'),
        ('transport_url = rabbit://h//\n', SUCCESS, 'keys are not needed'),
        (f'transport_url = {URL}\n', FAILURE, 'keys_path: not set'),
        (
            f'transport_url = {URL}\n[oslo_messaging_zmq]\ninsecure = true\n',
            WARNING,
            'messages are neither authenticated',
        ),
    ],
)
def test_going_without_keys_is_only_on_purpose(tmp_path, text, code, said):
    text = f'[DEFAULT]\n{text}'
    found, details = checked(status_cloud.check_keys, tmp_path, text)
    assert (found, said in details) == (code, True), details


def paste(tmp_path, before='osapi_compute_app_v21', after='', filters=FILTER):
    text = PASTE.read_text()
    line = 'authtoken keystonecontext osapi_compute_app_v21\n'
    assert text.count(line) == 1
    changed = line.replace(before, after or before)
    path = tmp_path / 'api-paste.ini'
    path.write_text(text.replace(line, changed) + filters)
    return f'[DEFAULT]\napi_paste = {path}\n'


@pytest.mark.parametrize(
    ('change', 'code', 'said'),
    [
        (
            {'after': 'fair osapi_compute_app_v21'},
            SUCCESS,
            'in the right place',
        ),
        ({'filters': ''}, WARNING, 'does not serve /fairness'),
        (
            {},
            FAILURE,
            'contains no filter of this package; expected fair once',
        ),
        (
            {'before': 'authtoken', 'after': 'fair authtoken'},
            FAILURE,
            'expected it between keystonecontext and the application',
        ),
        (
            {'after': 'osapi_compute_app_v21 fair'},
            FAILURE,
            'in the wrong place',
        ),
        (
            {'after': 'fair fair osapi_compute_app_v21'},
            FAILURE,
            'contains fair and fair',
        ),
        ({'filters': 'no header = 1'}, WARNING, ''),
        ({'filters': '\n[broken'}, FAILURE, 'not readable'),
    ],
)
def test_the_filter_stands_behind_authentication(tmp_path, change, code, said):
    text = paste(tmp_path, **change)
    found, details = checked(status_cloud.check_api_paste, tmp_path, text)
    assert (found, said in details) == (code, True), details


def test_where_there_is_no_nova_api_no_filter_is_missed(tmp_path):
    text = f'[DEFAULT]\napi_paste = {tmp_path}/none\n'
    code, details = checked(status_cloud.check_api_paste, tmp_path, text)
    assert code == SUCCESS
    assert 'no nova-api on this machine' in details


def run(tmp_path, capsys, text, *words):
    path = tmp_path / 'agent.conf'
    path.write_text(text)
    given = ['--config-file', str(path), *words, 'upgrade', 'check']
    code = status.main(given)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ('version', 'code', 'said'),
    [
        ('', SUCCESS, 'Nova is not installed in this Python environment'),
        ('30.1.0', FAILURE, 'Nova 30.1.0 is not supported; expected Nova 31'),
        ('31.3.1', SUCCESS, 'Nova 31.3.1 is supported'),
        ('34.0.0', SUCCESS, 'Nova 34.0.0 is supported'),
        ('35.0.0', WARNING, 'Nova 35.0.0: not tested'),
    ],
)
def test_a_release_of_nova_that_is_too_old_is_refused(
    tmp_path, monkeypatch, version, code, said
):
    monkeypatch.setattr(releases, 'release', lambda: version)
    found, details = checked(status_cloud.check_nova_release, tmp_path)
    assert (found, said in details) == (code, True), details


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of a release, with or without a scheduler of sched_ext."""

    def make(release, ops=''):
        monkeypatch.setattr(
            os, 'uname', lambda: types.SimpleNamespace(release=release)
        )
        monkeypatch.setattr(status_node, '_SCHED_EXT', tmp_path)
        (tmp_path / 'state').write_text('enabled\n' if ops else 'disabled\n')
        (tmp_path / 'root').mkdir()
        (tmp_path / 'root' / 'ops').write_text(f'{ops}\n')

    return make


@pytest.mark.parametrize(
    ('release', 'ops', 'code', 'said'),
    [
        ('6.1.0-40-amd64', '', SUCCESS, 'no known fault of CPU weights'),
        ('6.12.48', '', SUCCESS, 'some kernels of this series place'),
        ('6.18.44', '', WARNING, 'Linux 6.18.45 or later'),
        ('6.18.45', 'flatcg', SUCCESS, 'no known fault of CPU weights'),
        ('7.1.0', 'lavd_1.0', WARNING, 'scheduler lavd_1.0 runs'),
    ],
)
def test_a_kernel_that_does_not_follow_weights_is_a_warning(
    tmp_path, kernel, release, ops, code, said
):
    kernel(release, ops)
    found, details = checked(status_node.check_kernel, tmp_path)
    assert (found, said in details) == (code, True), details
    text = '[fairness]\ncontrols = memory\n'
    assert checked(status_node.check_kernel, tmp_path, text)[0] == SUCCESS


@pytest.mark.parametrize(
    ('light', 'code'),
    [(0.75, 0), (0.71, 0), (0.79, 0), (0.5, 2), (0.2, 2), (0.65, 1), (0.9, 1)],
)
def test_shares_of_a_measurement_have_a_verdict(light, code):
    assert status_effect.verdict_of(light)[0] == code


def test_a_measurement_that_cannot_be_made_says_why(capsys, monkeypatch):
    def refuse():
        raise exception.ControlUnavailable('no CPU controller is mounted')

    monkeypatch.setattr(status_effect, 'run', refuse)
    assert status.main(['effect']) == 255
    assert capsys.readouterr().err == (
        'nova-fairness-status: effect: not measured: '
        'no CPU controller is mounted; run it as root, and only once at the '
        'same time\n'
    )


@pytest.mark.parametrize(
    ('text', 'code'),
    [
        ('transport_url = rabbit://h//\n', 0),
        ('', 1),
        (f'transport_url = {URL}\n', 2),
    ],
)
def test_the_exit_code_is_the_worst_result(tmp_path, capsys, text, code):
    text = f'[DEFAULT]\napi_paste = {tmp_path}/none\n{text}'
    found, out, err = run(tmp_path, capsys, text, '--controller')
    assert (found, err) == (code, '')
    assert [name for name, _ in status_cloud.CHECKS] == [
        line.partition('Check: ')[2].strip(' |')
        for line in out.splitlines()
        if 'Check: ' in line
    ]


def test_a_compute_node_is_checked_for_more(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, 'geteuid', lambda: 1000)
    text = '[fairness]\nconnection_uri = test:///default\n'
    code, out, err = run(tmp_path, capsys, text)
    assert code in {1, 2}
    assert err == ''
    for name, _ in (*status_node.CHECKS, *status_cloud.CHECKS):
        assert f'Check: {name} ' in out
    assert 'Traceback' not in out


def test_a_configuration_that_is_none_cannot_be_checked(tmp_path, capsys):
    code, out, err = run(tmp_path, capsys, 'no section\n')
    assert (code, out) == (255, '')
    assert err.startswith('nova-fairness-status: ')


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (
            ('upgrade', 'chek'),
            "command 'upgrade chek' is unknown; expected 'upgrade check'\n",
        ),
        (('upgrade',), 'the following arguments are required: check'),
        (('upgarde', 'check'), "invalid choice: 'upgarde'"),
        (('--contoller', 'upgrade', 'check'), '--contoller'),
    ],
)
def test_an_unknown_check_name_is_refused(tmp_path, capsys, words, said):
    path = tmp_path / 'agent.conf'
    path.write_text('')
    assert status.main(['--config-file', str(path), *words]) == 255
    out, err = capsys.readouterr()
    assert said in err
    assert out == ''


def test_the_help_of_status_exits_with_success(capsys):
    assert status.main(['--help']) == 0
    assert 'upgrade' in capsys.readouterr().out
