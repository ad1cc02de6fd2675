# SPDX-License-Identifier: Apache-2.0

"""Writes what makes the plugin known: VERSION DIRECTORY."""

import configparser
import pathlib
import sys

CONFIG = pathlib.Path(__file__).parents[1] / 'setup.cfg'


def main(version: str, place: pathlib.Path) -> None:
    """Write the metadata of a distribution that is only the plugin."""
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(CONFIG, encoding='utf-8')
    groups = [
        f'[{group}]{lines}\n'
        for group, lines in parser['entry_points'].items()
        if group.startswith('openstack.')
    ]
    place.mkdir(parents=True, exist_ok=True)
    (place / 'entry_points.txt').write_text('\n'.join(groups))
    (place / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: nova-fairness-client\n'
        f'Version: {version}\n'
    )


if __name__ == '__main__':
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
