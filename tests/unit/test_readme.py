# SPDX-License-Identifier: Apache-2.0

"""What the documents tell people to type exists."""

import configparser
import contextlib
import functools
import importlib
import importlib.util
import io
import pathlib
import re
import subprocess
import sys

from oslo_config import cfg
import pytest

from nova_fairness.conf import api
from nova_fairness.conf import cluster
from nova_fairness.conf import opts
from oslo_messaging_zmq import options

TOP = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(TOP / name for name in ('README.rst', 'CONTRIBUTING.rst')),
    TOP / 'tests' / 'README.rst',
    *sorted((TOP / 'doc' / 'source').rglob('*.rst')),
]
SYSTEM_COMMANDS = frozenset(
    {
        'apt-get',
        'cat',
        'cd',
        'chgrp',
        'curl',
        'git',
        'install',
        'ip',
        'journalctl',
        'kill',
        'ln',
        'ls',
        'man',
        'mkdir',
        'openstack',
        'oslo-config-generator',
        'pip',
        'pre-commit',
        'pytest',
        'python',
        'python3',
        'oslopolicy-policy-generator',
        'oslopolicy-sample-generator',
        'reno',
        'rm',
        'scontrol',
        'sphinx-build',
        'systemctl',
        'tc',
        'tox',
        'virsh',
    }
)
LITERAL = re.compile(
    r'(?:^\.\. code-block:: (?P<language>\S+)|::)[ ]*\n'
    r'(?:[ ]*:.*\n)*\n(?P<body>(?:[ ]+.*\n|\n)+)',
    re.MULTILINE,
)
NAMED_PATH = re.compile(
    r'(?<![\w./-])(?:\./)?((?:tools|tests|benchmarks|doc|etc|nova_fairness)'
    r'/[\w./-]*\w\.(?:py|sh|rst|txt|conf))\b'
)
NAMED_MODULE = re.compile(r'python3? -m ((?:benchmarks|tests)(?:\.\w+)+)')
NAMED_OPTION = re.compile(r'``\[(fairness\w*)\]\s+(\w+)')


def blocks(text: str) -> list[tuple[str, str]]:
    """Language (empty for ``::``) and body of all literal blocks."""
    return [
        (match['language'] or '', match['body'])
        for match in LITERAL.finditer(text)
    ]


def commands() -> list[tuple[str, str]]:
    found = []
    for path in DOCUMENTS:
        for language, body in blocks(path.read_text(encoding='utf-8')):
            for line in map(str.strip, body.splitlines()):
                if language == 'console' and line[:2] in ('# ', '$ '):
                    found.append((path.relative_to(TOP).name, line[2:]))
                elif not language and is_command(line):
                    found.append((path.relative_to(TOP).name, line))
    return found


def is_command(line: str) -> bool:
    """Tell a command from other literal text, such as a diagram."""
    name = line.split(' ')[0]
    return name in SYSTEM_COMMANDS or name.startswith(('./', '/'))


def console_scripts() -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.read(TOP / 'setup.cfg', encoding='utf-8')
    lines = parser['entry_points']['console_scripts'].split('\n')
    pairs = [line.split('=') for line in lines if line]
    return {name.strip(): target.strip() for name, target in pairs}


@functools.cache
def help_of(program: str, *words: str) -> str:
    module, function = console_scripts()[program].split(':')
    if program == 'nova-fairness':
        # It chooses how threads are made as soon as it is imported.
        return help_of_process(program, module, function, *words)
    entry = getattr(importlib.import_module(module), function)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as end:
        entry([*words, '--help'])
    assert end.value.code in {0, None}
    return said.getvalue()


def help_of_process(
    program: str, module: str, function: str, *words: str
) -> str:
    source = (
        f'import sys; sys.argv[0] = {program!r}\n'
        f'import {module} as entry\nsys.exit(entry.{function}())'
    )
    answer = subprocess.run(
        [sys.executable, '-c', source, *words, '--help'],
        capture_output=True,
        check=False,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def word_of(command: str) -> str:
    """The first word that sets no variable."""
    return next(word for word in command.split() if '=' not in word)


def program_of(command: str) -> str:
    return word_of(command).rsplit('/', 1)[-1]


def test_the_readme_check_finds_commands():
    programs = {program_of(command) for _, command in commands()}
    assert {'lab.sh', 'test.sh', 'nova-fairness'} <= programs


@pytest.mark.parametrize(('document', 'command'), commands())
def test_every_command_names_something_that_exists(document, command):
    word = word_of(command)
    if word.startswith(('./', 'tools/')):
        assert (TOP / word).is_file(), command
    elif program_of(word) not in SYSTEM_COMMANDS:
        assert program_of(word) in console_scripts(), command


def words_of(program: str) -> set[tuple[str, ...]]:
    """Subcommands that the documents use with a program."""
    lines = [c for _, c in commands() if program_of(c) == program]
    return {
        tuple(w for w in line.split()[1:2] if w.isalpha() and w.islower())
        for line in lines
    }


def options_of(program: str, words: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for _, command in commands():
        rest = tuple(command.split()[1:])
        if program_of(command) == program and rest[: len(words)] == words:
            found.update(re.findall(r'--[a-z][a-z-]+', command))
    return found


@pytest.mark.parametrize(
    'program', ['nova-fairness', 'nova-fairness-ctl', 'nova-fairness-lab']
)
def test_every_option_of_our_programs_exists(program):
    for words in sorted(words_of(program)):
        text = help_of(program, *words)
        unknown = {o for o in options_of(program, words) if o not in text}
        assert unknown == set(), f'{program} {words}'


def test_every_option_given_to_the_lab_script_exists():
    text = help_of('nova-fairness-lab', 'run')
    assert {o for o in options_of('lab.sh', ()) if o not in text} == set()


def test_every_path_in_the_documents_exists():
    missing = [
        f'{path.name}: {name}'
        for path in DOCUMENTS
        for name in NAMED_PATH.findall(path.read_text(encoding='utf-8'))
        if not (TOP / name).is_file()
    ]
    assert missing == []


def test_every_module_that_the_documents_run_exists():
    named = {
        name
        for path in DOCUMENTS
        for name in NAMED_MODULE.findall(path.read_text(encoding='utf-8'))
    }
    assert 'benchmarks.beside' in named
    assert {name for name in named if not importlib.util.find_spec(name)} == (
        set()
    )


def configuration() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    opts.register_opts(conf)
    options.register_opts(conf)
    api.register_opts(conf)
    cluster.register_opts(conf)
    return conf


def test_every_option_of_the_configuration_exists():
    conf = configuration()
    named = [
        (path.name, *pair)
        for path in DOCUMENTS
        for pair in NAMED_OPTION.findall(path.read_text(encoding='utf-8'))
    ]
    assert named
    assert [one for one in named if one[2] not in conf[one[1]]] == []


def test_every_example_of_a_configuration_can_be_read(tmp_path):
    seen = 0
    for path in DOCUMENTS:
        for language, body in blocks(path.read_text(encoding='utf-8')):
            if language == 'ini' and '[fairness' in body:
                check_example(tmp_path / 'example.conf', body)
                seen += 1
    assert seen >= 2


def check_example(place: pathlib.Path, body: str) -> None:
    lines = [line.strip() for line in body.splitlines()]
    place.write_text('\n'.join(lines), encoding='utf-8')
    conf = configuration()
    conf(['--config-file', str(place)], default_config_files=[])
    parser = configparser.ConfigParser(default_section='')
    parser.read(place, encoding='utf-8')
    for group in parser.sections():
        known = conf if group == 'DEFAULT' else conf[group]
        for name in parser[group]:
            assert name in known, f'[{group}] {name}'
            assert known[name] is not None


def test_the_check_finds_a_missing_option(tmp_path):
    with pytest.raises(AssertionError, match='no_such_option'):
        check_example(
            tmp_path / 'example.conf', '[fairness]\nno_such_option = 1\n'
        )


def test_literal_blocks_are_found_with_their_language():
    text = (
        'Text::\n\n    a b\n\nMore:\n\n.. code-block:: ini\n\n   [x]\n\nEnd\n'
    )
    assert [(kind, body.strip()) for kind, body in blocks(text)] == [
        ('', 'a b'),
        ('ini', '[x]'),
    ]
