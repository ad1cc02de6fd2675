# SPDX-License-Identifier: Apache-2.0

"""The scheduler that a program put into the kernel, if there is one."""

import pathlib


def extension(sys: str = '/sys') -> str:
    """Name of the scheduler of sched_ext that runs; '' if none does.

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
