# SPDX-License-Identifier: Apache-2.0

"""Tests that a change can affect: ``python tools/changed.py [SINCE]``.

Prints the files of tests, one a line. A test is affected if it, or a module
that it imports, directly or not, or a file that one of these names, changed
since the revision SINCE of git (the default: the upstream branch, else HEAD).
Requirements and the configuration of all tests affect all of them.
"""

import ast
import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
ALWAYS = ('tests/unit/test_*.py', 'tests/unit/doc/test_*.py')
"""They read the whole tree, or all pages."""

FOR_ALL = frozenset(
    {
        'setup.cfg',
        'setup.py',
        'pyproject.toml',
        'requirements.txt',
        'test-requirements.txt',
        'bindep.txt',
        'tests/conftest.py',
    }
)
DATA = frozenset({'.yaml', '.json', '.csv', '.swf'})
"""Files that modules name without the suffix."""

APART = frozenset({'doc', 'releasenotes', '.git', '.venv', 'build'})
"""Folders without modules of this project."""


def main(words: list[str]) -> int:
    """Print the tests that are affected."""
    if len(words) > 1 or words[:1] == ['--help']:
        sys.stderr.write(f'{__doc__}\n')
        return 2
    try:
        changed = [*since(*words)]
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f'changed.py: {" ".join(error.cmd)} failed\n')
        return 2
    for path in affected(changed, TOP):
        print(path)
    return 0


def since(revision: str | None = None) -> Iterator[str]:
    """Files that are not as they were at a revision.

    :raises CalledProcessError: if git does not know it.
    """
    if revision is None:
        pushed = ['rev-parse', '--verify', '-q', '@{upstream}']
        revision = next(iter(_git(*pushed, check=False)), 'HEAD')
    yield from _git('diff', '--name-only', '--no-renames', revision, '--')
    yield from _git('ls-files', '--others', '--exclude-standard')


def _git(*words: str, check: bool = True) -> list[str]:
    command = ['git', '-C', str(TOP), *words]
    done = subprocess.run(command, check=check, stdout=-1, text=True)
    return done.stdout.splitlines()


def affected(changed: Iterable[str], top: pathlib.Path) -> list[str]:
    """Files of tests that a change of some files can affect.

    :param changed: relative to the top of the tree.
    """
    modules = _modules(top)
    tests = {path for path in modules if _is_test(path)}
    found = {
        str(path.relative_to(top))
        for each in ALWAYS
        for path in top.glob(each)
    }
    touched = {*changed}
    if touched & FOR_ALL:
        return sorted(tests | found)
    users = users_of(modules, lambda tree: (*imported(tree), *_named(tree)))
    start = [
        path
        for name in touched
        for path in (
            [name] if name.endswith('.py') else _readers(name, modules)
        )
    ]
    return sorted(found | (tests & reached(start, users)))


def reached(start: Iterable[str], users: Mapping[str, set[str]]) -> set[str]:
    """Modules that use some modules, directly or not, and these."""
    left, seen = [*start], set[str]()
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            # A removed module is imported under its name still.
            left += users.get(path, ())
    return seen


def _is_test(path: str) -> bool:
    name = pathlib.PurePosixPath(path).name
    return path.startswith('tests/') and name.startswith(('test_', 'check_'))


def _modules(top: pathlib.Path) -> dict[str, str]:
    """Text of each module, by its path."""
    return {
        str(path.relative_to(top)): path.read_text('utf-8')
        for path in top.rglob('*.py')
        if path.relative_to(top).parts[0] not in APART
    }


def _readers(name: str, modules: Mapping[str, str]) -> list[str]:
    """Modules that may read a file: those that name it."""
    path = pathlib.PurePosixPath(name)
    words = {path.name, path.stem if path.suffix in DATA else path.name}
    named = re.compile('|'.join(rf'\b{re.escape(each)}\b' for each in words))
    return [each for each, text in modules.items() if named.search(text)]


def users_of(
    modules: Mapping[str, str], uses: Callable[[ast.AST], Iterable[str]]
) -> dict[str, set[str]]:
    """Paths of the modules that use each, by its path.

    :param modules: texts by paths.
    :param uses: names of the modules that a module uses.
    """
    users: dict[str, set[str]] = collections.defaultdict(set)
    for path, text in modules.items():
        for name in uses(ast.parse(text)):
            used = name.replace('.', '/')
            users[f'{used}.py'].add(path)
            users[f'{used}/__init__.py'].add(path)
        for folder in pathlib.PurePosixPath(path).parents:
            if _is_test(path):
                users[f'{folder}/conftest.py'].add(path)
    return users


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ''
            yield from (f'{node.module}.{each.name}' for each in node.names)


def _named(tree: ast.AST) -> Iterator[str]:
    """Modules that a module names in a text, as pytest does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
