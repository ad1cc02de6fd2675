# SPDX-License-Identifier: Apache-2.0


"""Checks of ``nova-fairness-status`` for every machine of a cloud."""

import configparser
import pathlib

from oslo_config import cfg
import oslo_messaging
from oslo_upgradecheck import upgradecheck

from nova_fairness import exception
from nova_fairness.cmd import known_options
from nova_fairness.cmd import status_results as results
from nova_fairness.conf import file_faults
from nova_fairness.nova_service import releases
from nova_fairness.runtime import transport
from oslo_messaging_zmq import options
from oslo_messaging_zmq.keys import allow_list
from oslo_messaging_zmq.keys import keyring
from oslo_messaging_zmq.redis import client as redis_client

FACTORY = 'api_ext.filter:FairnessFilter.factory'
COMPOSITE = 'composite:openstack_compute_api_v21'
PIPELINE = 'keystone'
BEFORE = 'keystonecontext'
"""Name of the filter that identifies the caller; the filter of this package
must come after it.
"""


def check_message_transport(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check the connection to the Redis server of the transport, if it has
    one.
    """
    if not conf.transport_url:
        return results.warning(
            'transport_url: not set: this node compares only its own users, '
            'and nova-fairness-ctl cannot reach it'
        )
    url = oslo_messaging.TransportURL.parse(conf)
    place = transport.redis_of(conf)
    if place is None:
        return results.success(f'{url.transport}:// needs no Redis')
    timeout_s = options.read(conf, url).redis_timeout
    client = redis_client.connect(place, timeout_s=timeout_s)
    try:
        version = client.info('server')['redis_version']
    except redis_client.FAILURES as error:
        return results.failure(redis_client.explain(error, place))
    finally:
        client.close()
    return results.success(f'{place.place} answers, version {version}')


def check_keys(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check whether this node has a valid key."""
    needless = results.success('keys are not needed: only zmq uses them')
    if not conf.transport_url:
        return needless
    url = oslo_messaging.TransportURL.parse(conf)
    if not transport.is_ours(url):
        return needless
    settings = options.read(conf, url)
    if not settings.keys_path:
        if settings.insecure:
            return results.warning(
                '[oslo_messaging_zmq] insecure: set: messages are neither '
                'authenticated nor encrypted, so any program can answer for '
                'this host and send its reports'
            )
        return results.failure(
            '[oslo_messaging_zmq] keys_path: not set; set it to the keys '
            'directory of nova-fairness-keys'
        )
    return _keyring_result(
        keyring.Keyring(settings.keys_path), conf.fairness.host
    )


def check_nova_release(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check whether the Nova in this Python environment is supported."""
    del conf
    if fault := releases.unsupported_release():
        return results.failure(fault)
    if not (found := releases.release()):
        return results.success(
            'Nova is not installed in this Python environment'
        )
    if releases.release_number(found) > releases.NEWEST:
        return results.warning(
            f'Nova {found}: not tested: it is newer than the tested releases '
            f'{releases.OLDEST} to {releases.NEWEST}'
        )
    return results.success(f'Nova {found} is supported')


def check_api_paste(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check for the filter of the HTTP API, if nova-api is on this machine."""
    path = pathlib.Path(conf.api_paste)
    if not path.exists():
        return results.success(f'no nova-api on this machine: no file {path}')
    if fault := paste_fault(path):
        return results.failure(f'{path}: {fault}')
    if not has_filter(path):
        return results.warning(
            f'{path}: the filter {FACTORY} is missing, so nova-api does not '
            'serve /fairness'
        )
    return results.success(f'{path}: the filter is in the right place')


_FILES = ('queue_config', 'nova_config', 'nova_api_config')
"""Options of the command line that name further configuration files."""


def check_option_names(conf: cfg.ConfigOpts) -> upgradecheck.Result:
    """Check for unknown options in configuration files."""
    more = [path for each in _FILES if (path := conf.get(each))]
    files = [*file_faults.configuration_files(conf), *more]
    found = known_options.describe_unknown_options(dict.fromkeys(files))
    if found:
        return results.warning('; '.join(found))
    return results.success('all options of this product are known')


CHECKS: tuple[results.Named, ...] = (
    ('Options', check_option_names),
    ('Nova release', check_nova_release),
    ('Message transport', check_message_transport),
    ('Keys', check_keys),
    ('HTTP interface', check_api_paste),
)
"""Checks for every machine of the cloud, by name."""


def _keyring_result(ring: keyring.Keyring, host: str) -> upgradecheck.Result:
    entry = ring.require(ring.public)
    if entry.name != ring.name:
        return results.failure(
            f'key of {ring.name}: the allow-list has it under another name, '
            f'{entry.name}'
        )
    if entry.role == 'node' and ring.name != host:
        return results.failure(
            f'key: it belongs to {ring.name}; expected the key of [fairness] '
            f'host, {host}: other nodes refuse reports with another key, and '
            'cannot call this host'
        )
    if entry.role == allow_list.CONTROLLER and not entry.signs:
        return results.warning(
            f'key of {ring.name}: it cannot sign, so it cannot set a metric '
            f'or policy; run nova-fairness-keys rotate {ring.name}'
        )
    return results.success(f'{ring.name} is on the allow-list as {entry.role}')


def has_filter(path: pathlib.Path) -> bool:
    """Return whether a file defines the filter.

    :raises ConfigurationError: if it cannot be read.
    """
    return bool(_pipeline_names(_parsed_pipelines(path)))


def paste_fault(path: pathlib.Path) -> str:
    """Describe a wrong use of the filter in a file.

    :returns: empty if the use is right, or if the file does not use the
        filter.
    :raises ConfigurationError: if it cannot be read.
    """
    parser = _parsed_pipelines(path)
    names = _pipeline_names(parser)
    if not names:
        return ''
    pipeline = parser.get(COMPOSITE, PIPELINE, fallback='').split()
    used = [name for name in pipeline if name in names]
    if len(used) != 1:
        return (
            f'pipeline {PIPELINE} of [{COMPOSITE}]: it contains '
            f'{" and ".join(used) or "no filter of this package"}; expected '
            f'{names[0]} once'
        )
    place = pipeline.index(used[0])
    if BEFORE not in pipeline[:place] or place == len(pipeline) - 1:
        return (
            f'pipeline {PIPELINE} of [{COMPOSITE}]: {used[0]} is in the wrong '
            f'place; expected it between {BEFORE} and the application'
        )
    return ''


def _pipeline_names(parser: configparser.RawConfigParser) -> list[str]:
    return [
        section.partition(':')[2]
        for section in parser.sections()
        if section.startswith('filter:')
        and parser.get(section, 'paste.filter_factory', fallback='') == FACTORY
    ]


def _parsed_pipelines(path: pathlib.Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(path.read_text('utf-8'), str(path))
    except (OSError, ValueError, configparser.Error) as error:
        raise exception.ConfigurationError(
            f'{path}: not readable: {error}'
        ) from error
    return parser
