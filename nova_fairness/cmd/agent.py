# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness``: runs the agent of one node, and commands without it."""

import os
import sys
import warnings

from nova_fairness.nova_service import presence
from nova_fairness.nova_service import releases

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
# The privileged helper is a separate process, and its warnings are logged.
os.environ.setdefault('PYTHONWARNINGS', 'ignore:::oslo_privsep.daemon')

# The backend must be chosen before any other module of oslo is imported.
releases.use_native_threads()

from collections.abc import Callable  # noqa: E402
import errno  # noqa: E402
import hashlib  # noqa: E402
import logging  # noqa: E402
import resource  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import struct  # noqa: E402
import time  # noqa: E402
from typing import NoReturn  # noqa: E402

from oslo_config import cfg  # noqa: E402
from oslo_log import log  # noqa: E402
from oslo_service import service  # noqa: E402

from nova_fairness import exception  # noqa: E402
from nova_fairness import version  # noqa: E402
from nova_fairness.agent import assembly  # noqa: E402
from nova_fairness.agent import service as fairness_service  # noqa: E402
from nova_fairness.agent.inputs import nova_facts  # noqa: E402
from nova_fairness.agent.steering import controls  # noqa: E402
from nova_fairness.cmd import known_options  # noqa: E402
from nova_fairness.conf import opts  # noqa: E402
from nova_fairness.model import plain  # noqa: E402
from nova_fairness.model import wording  # noqa: E402
from nova_fairness.runtime import heap  # noqa: E402
from nova_fairness.runtime import safe_log  # noqa: E402

LOG = log.getLogger(__name__)

PROJECT = 'nova-fairness'

_ALONE_WITHIN_S = 2.0
"""Seconds to wait for the privileged helper of a killed agent to end."""


def _configuration(arguments: list[str]) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf.register_cli_opt(
        cfg.StrOpt(
            'command',
            positional=True,
            required=False,
            default='run',
            help='run: run the agent of this node until stopped. restore: '
            'restore the original values of all controls. withdraw: remove '
            "this node from Nova's list of services.",
        )
    )
    log.register_options(conf)
    log.set_defaults(
        default_log_levels=[
            *log.get_default_log_levels(),
            # It warns that the service does not fork, which is intended.
            'oslo_service.backend._threading=ERROR',
        ]
    )
    conf(
        arguments,
        project=PROJECT,
        version=version.release(),
        description='Fair sharing of an OpenStack compute node.',
    )
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        # Standard output is for the answers of commands.
        conf.set_default('use_stderr', True)
    log.setup(conf, PROJECT)
    safe_log.install()
    return conf


def _cloud_facts(conf: cfg.ConfigOpts) -> nova_facts.CloudFacts:
    """Register the agent as a service of Nova, if the options request it.

    :raises ConfigurationError: if the options request it, and it is not
        possible.
    """
    options = conf.fairness_nova
    wanted, why_not = presence.should_register(
        options.service, options.config_files
    )
    if not wanted:
        LOG.info('This agent is not a service of Nova: %s', why_not)
        return nova_facts.NoCloud()
    # Only from here on it is certain that Nova can be imported.
    from nova_fairness.nova_service import service as nova_service

    source, resource = None, conf.fairness.quota_source
    if resource in {'instances', 'cores', 'ram'}:
        source = nova_service.QuotaSource(
            resource=resource,
            entity=conf.fairness.entity,
            section=options.quota_section,
            region=options.region_name,
            interval_s=options.quota_interval,
        )
    return nova_service.connect(
        conf.fairness.host,
        options.config_files,
        conf.config_file or (),
        source,
    )


def _raise_descriptor_limit() -> None:
    """Raise the limit of open files. Each counter needs a descriptor, and the
    usual soft limit is 1024.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def acquire_agent_lock(
    uri: str, within_s: float = _ALONE_WITHIN_S
) -> socket.socket:
    """Ensure that no other agent changes the same VMs, even one with another
    state directory.

    A second agent would store the weights of the first as the original values.
    The lock is a socket name in the network namespace, and ends with the
    process.

    :param uri: URI of libvirt.
    :param within_s: seconds to wait for a process that is about to end.
    :returns: socket that holds the name until it is closed.
    :raises StateError: if another process has the name.
    """
    name = f'\0{PROJECT}/{hashlib.sha256(uri.encode()).hexdigest()}'
    limit_s = time.monotonic() + within_s
    lock = socket.socket(socket.AF_UNIX)
    while True:
        try:
            lock.bind(name)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < limit_s:
                time.sleep(0.05)
                continue
            lock.close()
            raise exception.StateError(
                f'agent: not started: another agent manages the VMs of {uri}'
                f'{_holder_text(name)}; run one agent per host'
            ) from error
        lock.listen(100)
        return lock


def _holder_text(name: str) -> str:
    """Return a text with the process that holds an abstract socket name; empty
    if unknown.
    """
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(_ALONE_WITHIN_S)
        try:
            asking.connect(name)
            found = asking.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, 12
            )
        except OSError:
            return ''
    pid, user, _ = struct.unpack('=iII', found)
    return f' (process {pid} of user {user})'


def _run(conf: cfg.ConfigOpts) -> NoReturn:
    known_options.warn_of_unknown_options(conf)
    alone = acquire_agent_lock(conf.fairness.connection_uri)
    _raise_descriptor_limit()
    # First, because the whole process shares one configuration of Nova.
    cloud = _cloud_facts(conf)
    controls.prepare_helpers(conf.config_file or ())
    parts = assembly.build(conf, cloud)
    heap.release_free_memory()
    agent = fairness_service.FairnessService(conf, parts)
    launcher = service.launch(conf, agent, workers=1, no_fork=True)
    launcher.wait()
    alone.close()
    logging.shutdown()
    # All work is done. A plugin that never returns could block a normal exit
    # for ever.
    os._exit(0)


def _restore(conf: cfg.ConfigOpts) -> int:
    """Restore all controls that have a record.

    :returns: 0 if all were restored; 1 if a restore failed or the record
        cannot be read.
    """
    controls.prepare_helpers(conf.config_file or ())
    with acquire_agent_lock(conf.fairness.connection_uri):
        done = assembly.restore(conf)
    for error in done.errors:
        sys.stderr.write(plain.lines(f'{error}\n'))
    restored = sum(item.written for item in done.outcomes)
    sys.stdout.write(
        plain.lines(
            f'{wording.counted(restored, "control")} restored,'
            f' {len(done.errors)} failed\n'
        )
    )
    return 0 if done.is_whole and not done.errors else 1


def _withdraw(conf: cfg.ConfigOpts) -> int:
    """Remove a stopped agent from Nova's list of services."""
    removed = _cloud_facts(conf).withdraw()
    sys.stdout.write(
        plain.lines(
            f'{conf.fairness.host} is no longer a service of Nova\n'
            if removed
            else f'{conf.fairness.host} was not a service of Nova\n'
        )
    )
    return 0


def _command(conf: cfg.ConfigOpts) -> Callable[[cfg.ConfigOpts], int]:
    commands = {
        'run': _run,
        'restore': _restore,
        'withdraw': _withdraw,
    }
    if conf.command not in commands:
        raise exception.ConfigurationError(
            f'command {conf.command!r} is unknown; '
            f'expected {" or ".join(commands)}'
        )
    return commands[conf.command]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line of the agent.

    :returns: 0 on success, 1 if the agent cannot start or restore, 2 on wrong
        usage or configuration.
    """
    given = sys.argv[1:] if arguments is None else arguments
    # Ignore a reload until the service handles it: there is nothing to reload
    # yet.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        conf = _configuration(given)
        return _command(conf)(conf)
    except (
        cfg.Error,
        exception.ConfigurationError,
        exception.PluginError,
        ValueError,
    ) as error:
        sys.stderr.write(plain.lines(f'nova-fairness: {error}\n'))
        return 2
    except exception.FairnessError as error:
        sys.stderr.write(plain.lines(f'nova-fairness: {error}\n'))
        return 1
