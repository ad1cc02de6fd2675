# SPDX-License-Identifier: Apache-2.0

"""Every command has a page, and every page of a command is a man page."""

import configparser
import pathlib
import runpy

TOP = pathlib.Path(__file__).resolve().parents[3]
CLI = TOP / 'doc' / 'source' / 'cli'
INTERNAL = {'nova-fairness-privileged'}
"""Started by the agent, never by people."""


def commands():
    setup = configparser.ConfigParser()
    setup.read(TOP / 'setup.cfg')
    scripts = setup['entry_points']['console_scripts'].split('\n')
    return {line.partition('=')[0].strip() for line in scripts if line}


def test_every_command_has_a_man_page_made_from_its_page():
    made = runpy.run_path(str(TOP / 'doc' / 'source' / 'conf.py'))
    pages = {page: name for page, name, *_ in made['man_pages']}
    names = commands() - INTERNAL | {'openstack-fairness'}
    assert pages == {f'cli/{name}': name for name in names}
    for name in names:
        title = (CLI / f'{name}.rst').read_text('utf-8').splitlines()[1]
        assert title.replace(' ', '-') == name
