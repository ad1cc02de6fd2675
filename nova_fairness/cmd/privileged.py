# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-privileged``: starts a privileged helper of the agent.

The agent starts it as root, with sudo if the agent is not root. The program
replaces oslo.privsep's own program for two contexts. It grants only the
capabilities that these contexts need, and reads no configuration. A user who
may start it can do nothing else with it.
"""

import warnings

# oslo.privsep imports eventlet where it is installed; nothing here runs it.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')

import argparse  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402

from nova_fairness.apply import privileged_client  # noqa: E402

_SOCKET = re.compile(r'(/[A-Za-z0-9_.-]+)+/privsep\.sock')


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=privileged_client.PROGRAM,
        description='Start a privileged helper of nova-fairness, as root.',
        allow_abbrev=False,
    )
    parser.add_argument(
        '--privsep_context', choices=privileged_client.KEPT, required=True
    )
    parser.add_argument('--privsep_sock_path', type=_socket, required=True)
    return parser.parse_args(given)


def _socket(path: str) -> str:
    if not _SOCKET.fullmatch(path):
        raise argparse.ArgumentTypeError(
            f'got {path!r}, expected the path of a socket of oslo.privsep'
        )
    return path


def main(arguments: list[str] | None = None) -> int:
    """Drop the unneeded capabilities of this process, and start the helper in
    it.

    :returns: 0 when the helper runs, 1 if capabilities could not be dropped;
        wrong usage exits with 2.
    """
    given = sys.argv[1:] if arguments is None else arguments
    options = _arguments(given)
    # oslo.config searches for files in places that some of these name.
    os.environ.clear()
    os.environ.update(PATH='/usr/sbin:/usr/bin:/sbin:/bin', HOME='/')
    try:
        privileged_client.confine(
            privileged_client.KEPT[options.privsep_context]
        )
    except OSError as error:
        sys.stderr.write(
            f'{privileged_client.PROGRAM}: capabilities not dropped:'
            f' {error.strerror}; start it as root\n'
        )
        return 1
    privileged_client.serve(options.privsep_context, options.privsep_sock_path)
    return 0


if __name__ == '__main__':
    sys.exit(main())
