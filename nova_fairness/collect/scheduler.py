# SPDX-License-Identifier: Apache-2.0

"""The CPU scheduler that a program loaded into the kernel."""

import pathlib


def sched_ext_name(sys: str = '/sys') -> str:
    """Return the name of the active sched_ext scheduler; empty if there is
    none.

    :param sys: where sysfs is mounted.
    """
    place = pathlib.Path(sys, 'kernel/sched_ext')
    try:
        if (place / 'state').read_text('ascii').strip() != 'enabled':
            return ''
        name = (place / 'root/ops').read_text('ascii', 'replace').strip()
    except OSError:
        return ''
    return ''.join(sign if sign.isprintable() else '?' for sign in name)
