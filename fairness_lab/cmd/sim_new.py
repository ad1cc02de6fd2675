# SPDX-License-Identifier: Apache-2.0

"""``nova-fairness-sim new``: a package with a plugin."""

import argparse
import pathlib
import sys

from fairness_lab.measures import files
from fairness_lab.plugin_kit import packages


def create(options: argparse.Namespace) -> int:
    """Create the package, and print what can be done with it.

    :param options: ``kind``, ``name`` and ``out``.
    :raises BadPluginName: if the name cannot be used.
    :raises SimError: if the directory exists.
    """
    package = packages.PluginPackage(options.kind, options.name)
    package.check()
    out = options.out or pathlib.Path(package.distribution)
    with files.new_directory(out) as directory:
        packages.write(package, directory)
    for path in sorted(package.files()):
        sys.stdout.write(f'{out / path}\n')
    sys.stdout.write(
        f'Test it: cd {out} && python -m pytest; README.rst says what'
        ' follows.\n'
    )
    return 0
