# SPDX-License-Identifier: Apache-2.0

"""Checks for unknown options and invalid values in configuration files.

oslo.config ignores unknown options, and checks the value of an option only
when a program reads it. Without these checks a misspelt option has no effect,
and an invalid value stops the next start.
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

OptionsByGroup = Iterable[tuple[cfg.OptGroup | str | None, Sequence[Any]]]
"""Groups and their options, in the form that ``list_opts`` of a package
returns.
"""

PREFIXES = ('fairness', 'nova_fairness', 'oslo_messaging_zmq')
"""Prefixes of the names of configuration sections of this product."""


def configuration_files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the paths of all files that a configuration was read from, in
    order.
    """
    folders = [pathlib.Path(each) for each in conf.config_dir or ()]
    inside = (
        sorted(folder.glob('*.conf')) for folder in folders if folder.is_dir()
    )
    found = [str(path) for paths in inside for path in paths]
    return [*map(str, conf.config_file or ()), *found]


def unknown_options(
    files: Iterable[str],
    listed: OptionsByGroup,
    prefixes: tuple[str, ...] = PREFIXES,
) -> list[str]:
    """Describe unknown options and unknown sections in configuration files.

    :param files: paths; a file that cannot be read is skipped.
    :param listed: all options of this product.
    :param prefixes: prefixes of the sections of this product.
    """
    known = _names_by_section(listed)
    found = []
    for path in files:
        for section, names in _options_in_file(path).items():
            if section not in known and not section.startswith(prefixes):
                continue
            found += [
                f'{path}: option {name} of [{section}] is not known, and has'
                f' no effect{_hint(name, known.get(section, {name: ""}))}'
                if section in known
                else f'{path}: option {name} is in the section [{section}],'
                f' which is not known{_hint(section, known)}'
                for name in names
                if _plain(name) not in known.get(section, {})
            ]
    return found


def invalid_values(files: Iterable[str], listed: OptionsByGroup) -> list[str]:
    """Describe the values in configuration files that the next start would
    refuse.

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


def _names_by_section(listed: OptionsByGroup) -> dict[str, dict[str, str]]:
    """Return the names of options that a file may contain, by section."""
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


def _options_in_file(path: str) -> Mapping[str, Iterable[str]]:
    """Return the options in a file, by section in lower case, as oslo.config
    does.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(path, sections).parse()
    except (OSError, UnicodeDecodeError, cfg.Error, iniparser.ParseError):
        # The program that reads the file reports the error.
        return {}
    found: dict[str, list[str]] = {}
    for section, options in sections.items():
        found.setdefault(section.lower(), []).extend(options)
    return found


def _hint(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most similar to an unknown name."""
    near = difflib.get_close_matches(name, [*known], 1)
    return f'; did you mean {near[0]}?' if near else ''
