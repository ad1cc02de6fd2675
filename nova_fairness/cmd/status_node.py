# SPDX-License-Identifier: Apache-2.0


"""Checks of ``nova-fairness-status`` for compute nodes."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import os
import pathlib
import shutil
import subprocess

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_fairness import exception
from nova_fairness import plugins
from nova_fairness.agent import assembly
from nova_fairness.agent import settings as settings_module
from nova_fairness.agent.steering import controls as controls_module
from nova_fairness.apply import control
from nova_fairness.apply import privileged
from nova_fairness.apply.cgroup import control as group_control
from nova_fairness.apply.cgroup import disk as disk_control
from nova_fairness.apply.cgroup import memory
from nova_fairness.cmd import status_results as results
from nova_fairness.collect import block_devices
from nova_fairness.collect import hypervisor
from nova_fairness.collect import parse
from nova_fairness.model import cgroup
from nova_fairness.model import instance
from nova_fairness.model import kernel as kernel_model
from nova_fairness.model import pressure
from nova_fairness.model import resources
from nova_fairness.model import wording
from nova_fairness.nova_service import presence

_MOUNTINFO = '/proc/self/mountinfo'
_SCHED_EXT = pathlib.Path('/sys/kernel/sched_ext')
_PATIENCE_S = 10.0
_SHOWN = 5
_MEASURE = 'to measure it: nova-fairness-status effect'
_CONTROLS: Mapping[
    resources.ResourceControl, Callable[..., control.Control]
] = {
    resources.ResourceControl.CPU: group_control.CpuShares,
    resources.ResourceControl.MEMORY: memory.MemoryProtection,
}
_GROUPS = (*_CONTROLS, resources.ResourceControl.DISK)
_PATH = '/usr/sbin:/sbin:/usr/bin:/bin'


def check_configuration(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check all options of the agent, and load the configured plugins."""
    settings = settings_module.from_conf(conf)
    assembly.load_plugins(settings)
    if warning := plugins.warning(settings.metric, settings.policy):
        return results.warning(warning)
    said = (
        f'metric {settings.metric}, policy {settings.policy}, '
        f'a round every {settings.interval_s:g} s'
    )
    if not settings.shadow_metric:
        return results.success(said)
    try:
        plugins.load_metric(settings.shadow_metric)
    except exception.PluginError as error:
        return results.warning(
            f'[fairness] shadow_metric: {error}; the agent runs without it'
        )
    return results.success(f'{said}, shadow metric {settings.shadow_metric}')


def check_state(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check whether the agent can save its state."""
    path = pathlib.Path(conf.fairness.state_path)
    place = next(each for each in (path, *path.parents) if each.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return results.failure(
            f'[fairness] state_path {path}: not writable by this user; set a '
            f'directory that the agent can write'
        )
    said = 'is writable' if place == path else f'can be created in {place}'
    return results.success(f'{path} {said}')


def check_libvirt(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that libvirt lists its running domains."""
    uri = conf.fairness.connection_uri
    with _connected(uri) as connection:
        count = len(connection.list_running())
    runs = wording.counted(count, 'domain runs', 'domains run')
    return results.success(f'{uri} answers; {runs}')


def check_owners(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check for Nova's metadata in the running domains."""
    claimed = settings_module.read_owners(conf.fairness.owners_file)
    unowned, count = [], 0
    with _connected(conf.fairness.connection_uri) as connection:
        for domain in connection.list_running():
            try:
                vm = parse.parse_domain(domain.read_xml())
            except exception.CollectError as error:
                unowned.append(f'{domain.name} ({error})')
                continue
            count += 1
            if parse.with_owner(vm, claimed).user_id == instance.UNOWNED:
                unowned.append(domain.name)
    if unowned:
        return results.warning(
            f'domains {_shortened(unowned)}: they have no owner, neither in '
            "Nova's metadata of the domain nor in [fairness] owners_file; "
            f'they all count as one user, {instance.UNOWNED!r}'
        )
    owned = wording.counted(count, 'domain')
    return results.success(f'all owners of {owned} are known')


def check_control_groups(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check whether this node can set the configured controls."""
    found: list[str] = []
    missing: list[str] = []
    for kind in _steered(conf):
        if kind in _GROUPS:
            works, what = _availability(kind, conf)
            (found if works else missing).append(f'{kind.value}: {what}')
    if not found and not missing:
        return results.success(
            '[fairness] controls: no control that uses control groups'
        )
    if not found:
        return results.failure('; '.join(missing))
    if refused := _read_only_mount():
        return results.failure(f'{refused}; mount it writable for root')
    said = f'{_versions()}; {", ".join(found)}'
    if missing:
        return results.warning(f'{said}; not available: {"; ".join(missing)}')
    return results.success(said)


def check_kernel(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check whether this kernel follows CPU weights."""
    if resources.ResourceControl.CPU not in _steered(conf):
        return results.success('[fairness] controls does not name cpu')
    release = os.uname().release
    scheduler = kernel_model.scheduler_fault(
        _file_text(_SCHED_EXT / 'state'),
        _file_text(_SCHED_EXT / 'root' / 'ops'),
    )
    faults = filter(None, (kernel_model.placement_fault(release), scheduler))
    if told := '; '.join(faults):
        return results.warning(f'{told}; {_MEASURE}')
    if kernel_model.may_have_fault(release):
        return results.success(
            f'Linux {release}: some kernels of this series place a running '
            f'group wrongly when its CPU weight changes; {_MEASURE}'
        )
    return results.success(f'Linux {release}: no known fault of CPU weights')


def check_privileges(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that the privileged helper starts, if this user is root."""
    if os.geteuid() != 0:
        return results.warning(
            'this user is not root, so the start of '
            'nova-fairness-privileged with sudo is not checked'
        )
    controls_module.prepare_helpers(conf.config_file or ())
    privileged.client.start()
    return results.success('the privileged helper starts')


def check_traffic_control(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check that the programs of iproute2 are installed."""
    if resources.ResourceControl.NETWORK not in _steered(conf):
        return results.success('[fairness] controls does not name network')
    for name in ('tc', 'ip'):
        if shutil.which(name, path=_PATH) is None:
            return results.failure(
                f'{name}: not found in {_PATH}; install the package iproute2'
            )
    program = shutil.which('tc', path=_PATH) or 'tc'
    done = subprocess.run(
        [program, '-V'],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
    return results.success(f'{program}: {done.stdout.strip()}')


def check_nova_service(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Report whether the agent will be a service of Nova."""
    options = conf.fairness_nova
    wanted, why_not = presence.should_register(
        options.service, options.config_files
    )
    if not wanted:
        return results.success(f'the agent runs stand-alone: {why_not}')
    files = ', '.join(options.config_files)
    return results.success(f'the agent is a service of Nova, by {files}')


CHECKS: tuple[results.Named, ...] = (
    ('Configuration', check_configuration),
    ('State', check_state),
    ('libvirt', check_libvirt),
    ('Owners of VMs', check_owners),
    ('Control groups', check_control_groups),
    ('Kernel', check_kernel),
    ('Privileges', check_privileges),
    ('Traffic control', check_traffic_control),
    ('Service of Nova', check_nova_service),
)
"""Checks for machines with VMs, by name."""


@contextlib.contextmanager
def _connected(uri: str) -> Iterator[hypervisor.Hypervisor]:
    connection = hypervisor.Hypervisor(uri, lambda _: None)
    try:
        yield connection
    finally:
        connection.close()


def _steered(conf: cfg.ConfigOpts) -> list[resources.ResourceControl]:
    wanted = settings_module.from_conf(conf).controls
    return [kind for kind in resources.CONTROLS if kind in wanted]


def _availability(
    kind: resources.ResourceControl, conf: cfg.ConfigOpts
) -> tuple[bool, str]:
    try:
        if kind is resources.ResourceControl.DISK:
            return check_disks(
                _running(conf), _MOUNTINFO, block_devices.BlockDevices()
            )
        return _CONTROLS[kind](mountinfo_path=_MOUNTINFO).availability()
    except exception.ControlUnavailable as error:
        return False, str(error)
    except OSError as error:
        return False, f'cannot read {_MOUNTINFO}: {error.strerror}'


def _running(conf: cfg.ConfigOpts) -> list[instance.Instance]:
    """Return the VMs that can be read; another check reports the others."""
    vms = []
    with (
        contextlib.suppress(exception.CollectError),
        _connected(conf.fairness.connection_uri) as connection,
    ):
        for domain in connection.list_running():
            with contextlib.suppress(exception.CollectError):
                vms.append(parse.parse_domain(domain.read_xml()))
    return vms


def _mounts() -> dict[str, cgroup.Mount]:
    return dict(cgroup.mounts(pathlib.Path(_MOUNTINFO).read_bytes()))


def _file_text(path: pathlib.Path) -> str:
    """Return the content of a file; empty if the kernel has no such file."""
    try:
        return path.read_text('utf-8', 'replace')
    except OSError:
        return ''


def _versions() -> str:
    unified = cgroup.UNIFIED in _mounts()
    legacy = any(name != cgroup.UNIFIED for name in _mounts())
    return 'cgroup ' + ' and '.join(
        name for name, has in (('v1', legacy), ('v2', unified)) if has
    )


def _read_only_mount() -> str:
    for mount in _mounts().values():
        if os.statvfs(mount.path).f_flag & os.ST_RDONLY:
            return f'{mount.path} is mounted read-only'
    return ''


def _shortened(names: list[str]) -> str:
    more = f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''
    return ', '.join(names[:_SHOWN]) + more


def check_disks(
    vms: Iterable[instance.Instance],
    mountinfo_path: str,
    blocks: block_devices.BlockDevices,
) -> tuple[bool, str]:
    """Check the devices of the disks of VMs, as the agent does.

    :param mountinfo_path: file with the mounts of the hierarchies.
    :param blocks: block devices of this host.
    :returns: whether a weight has an effect on any disk, and the files with
        weights or the reasons why there are none; without disks, possible
        files of this host.
    :raises ControlUnavailable: if this host has no block I/O controller.
    :raises OSError: if the mounts cannot be read.
    """
    mounts = cgroup.mounts(pathlib.Path(mountinfo_path).read_bytes())
    files = disk_control.weight_files(mounts)
    disks = [disk for vm in vms for disk in blocks.disks(vm)]
    if not disks:
        return True, ' or '.join(files)
    devices = _devices_of(disks, mounts, blocks)
    whys = []
    used = set()
    for disk in disks:
        own = [f for f in files if pressure.is_weighed(disk, devices, f)]
        used.update(own[:1])
        if not own:
            whys.append(pressure.reason_without_weights(disk, devices))
    told = [' or '.join(f for f in files if f in used)] if used else []
    told += [f'without effect: {why}' for why in sorted(set(whys))]
    return bool(used), '; '.join(told)


def _devices_of(
    disks: Iterable[pressure.DiskPath],
    mounts: Mapping[str, cgroup.Mount],
    blocks: block_devices.BlockDevices,
) -> Mapping[str, pressure.DeviceTotals]:
    by_cost = block_devices.cost_models(mounts)
    found = {
        number: blocks.totals(number, number in by_cost)
        for disk in disks
        for number in disk.devices
    }
    return {number: it for number, it in found.items() if it is not None}
