# SPDX-License-Identifier: Apache-2.0

"""Entries of configuration files that no option takes.

oslo.config reads over options that it does not know, and looks at values of
options only when they are asked for. A misspelt option would have no effect,
and a wrong value would end the next start.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import difflib
import pathlib
from typing import Any

from oslo_config import cfg
from oslo_config import iniparser

from nova_fairness.conf import opts

Listed = Iterable[tuple[cfg.OptGroup | str | None, Sequence[Any]]]
"""Groups and their options, as ``list_opts`` of a package gives them."""

PREFIXES = ('fairness', 'nova_fairness', 'oslo_messaging_zmq')
"""Sections of this product begin with one of them."""


def files_of(conf: cfg.ConfigOpts) -> list[str]:
    """Paths of all files that a configuration was read from, in order."""
    folders = [pathlib.Path(each) for each in conf.config_dir or ()]
    inside = (
        sorted(folder.glob('*.conf')) for folder in folders if folder.is_dir()
    )
    found = [str(path) for paths in inside for path in paths]
    return [*map(str, conf.config_file or ()), *found]


def unknown(
    files: Iterable[str],
    listed: Listed,
    prefixes: tuple[str, ...] = PREFIXES,
) -> list[str]:
    """Sentences about options in sections of this product that do not exist.

    :param files: paths; one that cannot be read is left out.
    :param listed: all options of this product.
    :param prefixes: of sections that are this product's.
    """
    known = _names(listed)
    found = []
    for path in files:
        for section, names in _written(path).items():
            if section not in known and not section.startswith(prefixes):
                continue
            found += [
                f'{path}: option {name} of [{section}] is not known, and has'
                f' no effect{_nearest(name, known.get(section, {name: ""}))}'
                if section in known
                else f'{path}: option {name} is in the section [{section}],'
                f' which is not known{_nearest(section, known)}'
                for name in names
                if _plain(name) not in known.get(section, {})
            ]
    return found


def invalid(files: Iterable[str], listed: Listed) -> list[str]:
    """Sentences about values that the next start would refuse.

    :param files: paths, in the order in which they are read.
    :param listed: the options of a program.
    """
    fresh = cfg.ConfigOpts()
    asked: list[tuple[str, Any]] = []
    for group, options in listed:
        if isinstance(group, cfg.OptGroup):
            opts.register_group(fresh, group, options)
            asked += [(group.name, option) for option in options]
    fresh([], default_config_files=list(files), default_config_dirs=[])
    found = []
    for section, option in asked:
        try:
            fresh[section][option.dest]
        except (cfg.Error, ValueError) as error:
            why = str(error).rpartition(' is not valid: ')[2]
            found.append(f'[{section}] {option.name}: invalid value: {why}')
    return found


def _names(listed: Listed) -> dict[str, dict[str, str]]:
    """Names of options that a file may use, by section."""
    known: dict[str, dict[str, str]] = {}
    for group, options in listed:
        section = str(getattr(group, 'name', group) or 'DEFAULT')
        for option in options:
            names = known.setdefault(section, {})
            names |= {option.dest: '', _plain(option.name): ''}
    known.pop('DEFAULT', None)
    return known


def _plain(name: str) -> str:
    return name.replace('-', '_')


def _written(path: str) -> Mapping[str, Iterable[str]]:
    """Options of a file, by section in lower case, as oslo.config reads."""
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(path, sections).parse()
    except (OSError, UnicodeDecodeError, cfg.Error, iniparser.ParseError):
        # What reads the file says so.
        return {}
    found: dict[str, list[str]] = {}
    for section, options in sections.items():
        found.setdefault(section.lower(), []).extend(options)
    return found


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*known], 1)
    return f'; did you mean {near[0]}?' if near else ''
