# SPDX-License-Identifier: Apache-2.0


"""``nova-fairness-status``: checks whether this machine meets the requirements
of the agent.

``nova-fairness-status upgrade check`` checks the requirements of the agent and
of the HTTP API, changes nothing, and prints a result for each check.
``nova-fairness-status effect`` measures whether CPU weights have an effect on
this machine.
"""

import warnings

# Libraries import eventlet where it is installed; this program never runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
warnings.filterwarnings('ignore', message='eventletutils module is deprecated')

from collections.abc import Callable  # noqa: E402
import functools  # noqa: E402
import logging  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402

from oslo_config import cfg  # noqa: E402
from oslo_upgradecheck import upgradecheck  # noqa: E402

from nova_fairness import exception  # noqa: E402
from nova_fairness.cmd import status_cloud  # noqa: E402
from nova_fairness.cmd import status_effect  # noqa: E402
from nova_fairness.cmd import status_node  # noqa: E402
from nova_fairness.cmd import status_results  # noqa: E402
from nova_fairness.conf import cluster as cluster_conf  # noqa: E402
from nova_fairness.conf import opts  # noqa: E402
from nova_fairness.model import plain  # noqa: E402

PROGRAM = 'nova-fairness-status'
PROJECT = 'nova-fairness'

BROKEN = 255
"""Exit code of oslo.upgradecheck if a check itself fails to run."""

INTERRUPTED = 130
"""Exit code that shells use for a program that Ctrl-C ended."""

_OPTIONS = [
    cfg.BoolOpt(
        'controller',
        default=False,
        help='skip the checks for compute nodes',
    ),
    cfg.StrOpt(
        'api-paste',
        default='/etc/nova/api-paste.ini',
        metavar='FILE',
        help='configuration of the pipelines of nova-api; without this file, '
        'checks of nova-api are skipped (default: /etc/nova/api-paste.ini)',
    ),
    cfg.StrOpt(
        'queue-config',
        default=str(cluster_conf.CONFIG_FILE),
        metavar='FILE',
        help='configuration of the queue; without this file, checks of the '
        f'queue are skipped (default: {cluster_conf.CONFIG_FILE})',
    ),
    cfg.StrOpt(
        'nova-config',
        default='/etc/nova/nova.conf',
        metavar='FILE',
        help='configuration of all services of Nova on this machine; without '
        'this file, checks of Nova are skipped (default: '
        '/etc/nova/nova.conf)',
    ),
    cfg.StrOpt(
        'nova-api-config',
        default='/etc/nova/nova-api.conf',
        metavar='FILE',
        help='further configuration that only nova-api reads (default: '
        '/etc/nova/nova-api.conf)',
    ),
]

Bound = Callable[[object], upgradecheck.Result]


class Checks(upgradecheck.UpgradeCommands):
    """The command ``upgrade check``.

    :param conf: configuration, read when the checks run.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__()
        self._conf = conf

    def check(self) -> upgradecheck.Code:
        """Run the checks for this machine, and print their results.

        :raises SystemExit: if the command is not ``upgrade check``; the parser
            accepts any second word.
        """
        if (asked := self._conf.command.check) != 'check':
            sys.stderr.write(
                plain.lines(
                    f'{PROGRAM}: command {f"upgrade {asked}"!r} is unknown; '
                    "expected 'upgrade check'\n"
                )
            )
            raise SystemExit(BROKEN)
        chosen = status_cloud.CHECKS
        if not self._conf.controller:
            chosen = (*status_node.CHECKS, *chosen)
        if (path := pathlib.Path(self._conf.queue_config)).exists():
            # Its libraries are an extra of the package.
            from nova_fairness.cmd import status_queue

            nova = (self._conf.nova_config, self._conf.nova_api_config)
            chosen = (*chosen, *status_queue.checks(path, *nova))
        self._upgrade_checks = tuple(
            (name, self._bound(check)) for name, check in chosen
        )
        return super().check()

    def _bound(self, check: status_results.Check) -> Bound:
        return lambda _: status_results.run(check, self._conf)


def _add_commands(checks: Checks, commands: Any) -> None:
    upgrade = commands.add_parser(
        'upgrade', help='check the requirements of this release'
    )
    upgrade.add_argument('check')
    upgrade.add_argument(
        '--json', action='store_true', help='print the results as JSON'
    )
    upgrade.set_defaults(action_fn=checks.check)
    effect = commands.add_parser(
        'effect',
        help='measure for five seconds whether CPU weights work; needs root',
    )
    effect.set_defaults(action_fn=_effect)


def _effect() -> int:
    try:
        return status_effect.run()
    except (exception.FairnessError, OSError, ValueError) as error:
        sys.stderr.write(
            plain.lines(
                f'{PROGRAM}: effect: not measured: {error}; run it as root, '
                'and only once at the same time\n'
            )
        )
        return BROKEN


def main(arguments: list[str] | None = None) -> int:
    """Run the checks, or measure the effect of weights.

    :param arguments: arguments without the name of the program; ``None`` for
        the arguments of the process.
    :returns: 0 on success, 1 with a warning, 2 with a failure, 130 after
        Ctrl-C, 255 if the checks could not be run.
    """
    given = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(level=logging.CRITICAL)
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    conf.register_cli_opts(_OPTIONS)
    add = functools.partial(_add_commands, Checks(conf))
    conf.register_cli_opt(cfg.SubCommandOpt('command', handler=add))
    try:
        conf(given, project=PROJECT)
        # oslo.upgradecheck looks there for --json.
        upgradecheck.CONF = conf
        return int(upgradecheck.run(conf))
    except cfg.Error as error:
        sys.stderr.write(plain.lines(f'{PROGRAM}: {error}\n'))
        return BROKEN
    except SystemExit as ended:
        # The parser's own code for a wrong command line is 2.
        return BROKEN if ended.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == '__main__':
    sys.exit(main())
