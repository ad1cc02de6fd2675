# SPDX-License-Identifier: Apache-2.0


"""What the pipelines of nova-api say about the filter of this package."""

import configparser
import pathlib

from nova_fairness import exception

FACTORY = 'api_ext.filter:FairnessFilter.factory'
COMPOSITE = 'composite:openstack_compute_api_v21'
PIPELINE = 'keystone'
BEFORE = 'keystonecontext'
"""The filter behind which the caller is known."""


def has_filter(path: pathlib.Path) -> bool:
    """Tell whether a file defines the filter.

    :raises ConfigurationError: if it cannot be read.
    """
    return bool(_names(_parsed(path)))


def fault(path: pathlib.Path) -> str:
    """Say what is wrong with how a file uses the filter.

    :returns: empty if nothing is, also if it does not use the filter.
    :raises ConfigurationError: if it cannot be read.
    """
    parser = _parsed(path)
    names = _names(parser)
    if not names:
        return ''
    pipeline = parser.get(COMPOSITE, PIPELINE, fallback='').split()
    used = [name for name in pipeline if name in names]
    if len(used) != 1:
        return (
            f'the pipeline {PIPELINE} of [{COMPOSITE}] names '
            f'{" and ".join(used) or "no filter of this package"}; expected '
            f'{names[0]} once'
        )
    place = pipeline.index(used[0])
    if BEFORE not in pipeline[:place] or place == len(pipeline) - 1:
        return (
            f'{used[0]} stands in the wrong place of the pipeline '
            f'{PIPELINE} of [{COMPOSITE}]; expected it between {BEFORE} and '
            'the application'
        )
    return ''


def _names(parser: configparser.RawConfigParser) -> list[str]:
    return [
        section.partition(':')[2]
        for section in parser.sections()
        if section.startswith('filter:')
        and parser.get(section, 'paste.filter_factory', fallback='') == FACTORY
    ]


def _parsed(path: pathlib.Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(path.read_text('utf-8'), str(path))
    except (OSError, ValueError, configparser.Error) as error:
        raise exception.ConfigurationError(
            f'{path} cannot be read: {error}'
        ) from error
    return parser
