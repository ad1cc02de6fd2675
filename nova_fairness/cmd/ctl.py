# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-ctl``: queries and controls the agents of a domain."""

import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
warnings.filterwarnings('ignore', message='eventletutils module is deprecated')

import argparse  # noqa: E402
from collections.abc import Callable  # noqa: E402
from collections.abc import Sequence  # noqa: E402
import dataclasses  # noqa: E402
import getpass  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402

from oslo_config import cfg  # noqa: E402

from nova_fairness import exception  # noqa: E402
from nova_fairness.cmd import ctl_options  # noqa: E402
from nova_fairness.cmd import ctl_tables  # noqa: E402
from nova_fairness.cmd import ctl_top  # noqa: E402
from nova_fairness.conf import exchange  # noqa: E402
from nova_fairness.conf import opts  # noqa: E402
from nova_fairness.conf import transport as transport_conf  # noqa: E402
from nova_fairness.model import plain  # noqa: E402
from nova_fairness.rpc import client as client_module  # noqa: E402
from nova_fairness.rpc import request_ids  # noqa: E402
from nova_fairness.rpc import rollout  # noqa: E402
from nova_fairness.runtime import closed_output  # noqa: E402
from nova_fairness.runtime import signatures  # noqa: E402
from nova_fairness.runtime import transport as transport_module  # noqa: E402

DONE = 0
INCOMPLETE = 1
BAD_USAGE = 2
INTERRUPTED = 130

PROGRAM = ctl_options.PROGRAM
_CLEAN_S = 2.0
_VERSION = 1


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    :param arguments: arguments without the name of the program; ``None`` for
        the arguments of the process.
    :returns: the exit code.
    """
    options = ctl_options.parse_arguments(arguments)
    logging.basicConfig(level=logging.WARNING, handlers=[_OneLine()])
    try:
        with closed_output.exit_if_closed():
            return _run(options)
    except (exception.ConfigurationError, cfg.Error, ValueError) as error:
        return _print_error(error, BAD_USAGE)
    except exception.FairnessError as error:
        return _print_error(error, INCOMPLETE)
    except KeyboardInterrupt:
        return _print_error('interrupted', INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - operators get no traceback
        return _print_error(f'{type(error).__name__}: {error}', INCOMPLETE)


class _OneLine(logging.StreamHandler):  # type: ignore[type-arg]  # of stderr
    """Log handler that writes one line per message, without tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        said = plain.line(record.getMessage())
        return f'{PROGRAM}: {record.levelname.lower()}: {said}'


def _print_error(error: object, code: int) -> int:
    sys.stderr.write(plain.lines(f'{PROGRAM}: {error}\n'))
    return code


def _configuration(options: argparse.Namespace) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    opts.register_group(conf, exchange.GROUP, exchange.OPTS)
    transport_conf.register_opts(conf)
    given = [f'--config-file={path}' for path in options.config_file or ()]
    conf(given, project='nova-fairness', prog=PROGRAM)
    if options.transport_url is not None:
        conf.set_override('transport_url', options.transport_url)
    if not conf.transport_url:
        raise exception.ConfigurationError(
            'transport_url: not set; give --transport-url, or a --config-file '
            'with the transport_url of the agents'
        )
    return conf


def _hosts(
    options: argparse.Namespace, client: client_module.FairnessClient
) -> Sequence[str]:
    if options.all:
        return client.known_hosts()
    hosts = list(options.host or ())
    if options.hosts_from:
        hosts.extend(_names(options.hosts_from))
    if not hosts:
        raise exception.ConfigurationError(
            f'--hosts-from {options.hosts_from}: it contains no host'
        )
    return hosts


def _names(path: pathlib.Path) -> list[str]:
    try:
        lines = path.read_text('utf-8').splitlines()
    except (OSError, ValueError) as error:
        raise exception.ConfigurationError(
            f'--hosts-from {path}: not readable: {error}'
        ) from error
    names = (line.partition('#')[0].strip() for line in lines)
    return [name for name in names if name]


def _run(options: argparse.Namespace) -> int:
    conf = _configuration(options)
    request_id = request_ids.new_request_id()
    transport = transport_module.open_transport(
        conf, client_module.ALLOWED_REMOTE_MODULES
    )
    try:
        client = client_module.FairnessClient(
            transport, options.timeout, conf.fairness_exchange.domain
        ).for_request(request_id, _login())
        hosts = _hosts(options, client)
        if options.command == ctl_options.TOP:
            return _top(options, client, hosts)
        answers = _ask(options, client, hosts, conf)
    finally:
        _clean(transport.cleanup)
    _show(options, answers, request_id)
    return DONE if answers.is_complete else INCOMPLETE


def _login() -> str:
    """Return the name of the user who runs the command, for the logs of
    agents.
    """
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # no user has this number
        name = str(os.getuid())
    return f'{name}@{socket.gethostname()}'


def _ask(
    options: argparse.Namespace,
    client: client_module.FairnessClient,
    hosts: Sequence[str],
    conf: cfg.ConfigOpts,
) -> client_module.Answers:
    method = ctl_options.METHODS[options.command]
    if options.command in ctl_options.EPOCH_COMMANDS:
        signer = signatures.of(conf, conf.fairness_exchange.domain)
        return rollout.set_for_all(client, hosts, method, options.name, signer)
    if options.command == 'prefer':
        return client.call_all(hosts, method, preferences=options.preferences)
    if options.command == ctl_options.WHY:
        return client.find_instance(hosts, options.name)
    if options.command == ctl_options.PREVIEW:
        return client.call_all(hosts, method, metric=options.name)
    return client.call_all(hosts, method)


def _top(
    options: argparse.Namespace,
    client: client_module.FairnessClient,
    hosts: Sequence[str],
) -> int:
    def ask() -> ctl_top.HostAnswers:
        users = client.call_all(hosts, 'list_users')
        instances = client.call_all(list(users.by_host), 'list_instances')
        silent = {
            host: why
            for said in (instances, users)
            for host, why in {**said.refused, **said.not_reached}.items()
        }
        return users.by_host, instances.by_host, silent

    whole = ctl_top.show(ask, options.interval or 2.0, options.count)
    return DONE if whole else INCOMPLETE


def _clean(clean: Callable[[], None]) -> None:
    """Close the connections, and wait only a short time for threads that
    block.
    """
    thread = threading.Thread(target=clean, name='clean-up', daemon=True)
    thread.start()
    thread.join(_CLEAN_S)


def _show(
    options: argparse.Namespace,
    answers: client_module.Answers,
    request_id: str,
) -> None:
    if options.json:
        json.dump(
            {
                'version': _VERSION,
                'command': options.command,
                'request_id': request_id,
                **dataclasses.asdict(answers),
            },
            sys.stdout,
            indent=2,
        )
        sys.stdout.write('\n')
    elif answers.by_host:
        sys.stdout.write(plain.lines(_text(options, answers.by_host)))
    sys.stdout.flush()
    if options.command in ctl_options.EPOCH_COMMANDS:
        for text in _warnings(answers):
            _print_problem(f'warning: {text}')
    for host, why in answers.refused.items():
        _print_problem(f'{host}: refused: {why}')
    for host, why in answers.not_reached.items():
        _print_problem(f'{host}: not reached: {why}')


def _print_problem(what: str) -> None:
    said = plain.line(f'{PROGRAM}: {what}')
    sys.stderr.write(plain.lines(f'{said}\n'))


def _text(options: argparse.Namespace, by_host: ctl_tables.Answers) -> str:
    if options.command == ctl_options.WHY:
        return ctl_tables.explanation(by_host, everything=options.long)
    if options.command == ctl_options.PREVIEW:
        return ctl_tables.preview(by_host, everything=options.long)
    return ctl_tables.table(options.command, by_host)


def _warnings(answers: client_module.Answers) -> list[str]:
    """Return the warnings of hosts about their settings, without
    duplicates.
    """
    told = [said.get('warning') for said in answers.by_host.values()]
    return list(dict.fromkeys(text for text in told if text))


if __name__ == '__main__':
    sys.exit(main())
