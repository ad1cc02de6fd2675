# SPDX-License-Identifier: Apache-2.0

"""Texts are plain: words and sentences that readers stumble over are counted.

The counts of files that have any are in `language_baseline.txt`. A count that
falls is written there in the same commit, and so is a file that moves:

    python -m tests.unit.test_language --write

This refuses when the sum rises. The product and the pages that users and
operators read have none at all (`is_plain`).
"""

import ast
from collections.abc import Iterator
import functools
import pathlib
import re
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BASELINE = pathlib.Path(__file__).with_name('language_baseline.txt')
CODE = (
    'nova_fairness',
    'api_ext',
    'oslo_messaging_zmq',
    'fairness_lab',
    'benchmarks',
    'tools',
)
PAGES = (
    '*.rst',
    'doc/source/**/*.rst',
    'doc/source/**/*.inc',
    'releasenotes/notes/*.yaml',
)
READ = re.compile(
    'README|doc/source/(index|user/|admin/|reference/|cli/|install/|config)'
)
"""Pages for users and operators."""
SPOKEN = re.compile('nova_fairness/|api_ext/|oslo_messaging_zmq/')
"""The product: its docstrings, messages, logs and helps."""

WORDS = re.compile(
    r'\b(whoever|whom|of\s+which|somebody|nobody|anew|likewise'
    r'|no\s+more(?!\s+than\b)|comes?\s+to|came\s+(to|of)|what\s+became\s+of'
    r')\b',
    re.IGNORECASE,
)
CLAUSE = re.compile(
    r"""(?:^|[.!?:][)"'*]*\s+)        # where a sentence begins
        ["'(*]*(?:Who|What|Whose|Whatever)\s
        (?:[^.!?]|[.!?](?!\s|$))*     # to its end,
        (?!\?)(?:[.!]|$)              # unless it is a question
    """,
    re.VERBOSE,
)
LATER_CLAUSE = re.compile(r';\s+(?:who|what|whose|whatever)\s')
TOKENS = re.compile('``(nobody|packed anew)``')
"""Names of others: a user of Linux, a row of recorded results."""
BLOCK = re.compile(
    r"""\n\s*\n                       # paragraphs
        |\n[=~^"*+-]+\n               # lines under titles
        |\n(?=\s*(?:[*-]|\#\.|\d+\.)\s)   # items of lists, cells of tables
    """,
    re.VERBOSE,
)


def stumbles(text: str) -> int:
    """How many words and sentences of a text are not plain."""
    text = TOKENS.sub('``token``', text)
    blocks = [block.strip(' \n*-') for block in BLOCK.split(text)]
    return len(WORDS.findall(text)) + sum(
        len(CLAUSE.findall(block)) + len(LATER_CLAUSE.findall(block))
        for block in blocks
    )


def strings(tree: ast.AST) -> Iterator[tuple[bool, str]]:
    """All texts of a module, and whether each is a docstring."""
    if isinstance(tree, ast.JoinedStr):
        yield (
            False,
            ''.join(
                part.value if isinstance(part, ast.Constant) else '{}'
                for part in tree.values
            ),
        )
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.Constant):
            yield from strings(child)
        elif isinstance(child.value, str) and not isinstance(
            tree, ast.JoinedStr
        ):
            yield isinstance(tree, ast.Expr), child.value


def texts(path: pathlib.Path) -> Iterator[tuple[bool, str]]:
    """Texts of a file that people read. Names and tokens have no space."""
    text = path.read_text('utf-8')
    if path.suffix == '.py':
        found = strings(ast.parse(text))
        yield from (each for each in found if ' ' in each[1].strip())
    else:
        yield False, text


def files() -> list[pathlib.Path]:
    """All files that are counted."""
    found = [
        path
        for folder in CODE
        for path in (TOP / folder).rglob('*.py')
        if '/tests/' not in str(path.relative_to(TOP))
    ]
    for pattern in PAGES:
        found += TOP.glob(pattern)
    return sorted(found)


def name_of(path: pathlib.Path) -> str:
    """Path below the top of the tree."""
    return str(path.relative_to(TOP))


@functools.cache
def counts() -> dict[str, int]:
    """Stumbles of each file that has any."""
    sums = {
        name_of(path): sum(stumbles(text) for _, text in texts(path))
        for path in files()
    }
    return {name: count for name, count in sums.items() if count}


def baseline() -> dict[str, int]:
    """Counts that were found last."""
    lines = BASELINE.read_text('utf-8').splitlines()
    return {
        name: int(count) for name, count in (line.rsplit() for line in lines)
    }


def is_plain(name: str) -> bool:
    """Whether all texts of a file are to be plain."""
    return bool(READ.match(name) or SPOKEN.match(name))


def write() -> None:
    """Take over what is counted, unless the sum rose."""
    found = counts()
    before = sum(baseline().values()) if BASELINE.exists() else None
    after = sum(found.values())
    if before is not None and after > before:
        raise SystemExit(f'{after} stumbles, {before} before: rewrite them')
    lines = [f'{name} {count}\n' for name, count in sorted(found.items())]
    BASELINE.write_text(''.join(lines), 'utf-8')
    print(f'{after} stumbles in {len(found)} files')


def show(names: list[str]) -> None:
    """Print the texts of files, or of all, that are to be rewritten."""
    for path in files():
        name = name_of(path)
        if names and not any(name.startswith(each) for each in names):
            continue
        for docstring, text in texts(path):
            if count := stumbles(text):
                kind = 'docstring' if docstring else 'text'
                print(name, kind, count)
                if path.suffix == '.py':
                    print('   ', ' '.join(text.split()))


@pytest.mark.parametrize(
    'text',
    [
        'Whoever reads this stumbles.',
        'Users for whom it runs.',
        'Two hosts, one of which is empty.',
        'Two hosts, one of\nwhich is empty.',
        'nobody leads',
        'It is told anew.',
        'There are no more hosts.',
        'The sum comes to 3.',
        'Nothing came of it.',
        'What waits is shown.',
        'It runs. Who waits is shown.',
        'It runs; what waits is shown.',
        'A list:\n\n* What waits\n* that it runs',
        '   * - state\n     - What it is in.\n',
        'What waits\n==========\n',
    ],
)
def test_stumble_is_counted(text):
    assert stumbles(text) == 1


@pytest.mark.parametrize(
    'text',
    [
        'What waits? All of it.',
        'It shows what waits.',
        'It runs, and shows who waits.',
        'There are no more than 3 hosts.',
        'The newcomers today; the whole is which of them?',
        'nobody_leads',
        'It runs as ``nobody``.',
        'Whole hosts are somewhat likely to become total.',
        '* - What\n  - Meaning\n',
    ],
)
def test_plain_text_is_not_counted(text):
    assert stumbles(text) == 0


def test_texts_of_a_module_are_found(tmp_path):
    module = tmp_path / 'module.py'
    module.write_text(
        '"""A module."""\nLOG.info(f"it is {state} now")\n'
        "raise Fault('nothing is ' 'left')\nname = 'token'\n"
    )
    assert sorted(texts(module)) == [
        (False, 'it is {} now'),
        (False, 'nothing is left'),
        (True, 'A module.'),
    ]


def test_counts_are_those_of_the_baseline():
    """`--write` takes over smaller counts and moved files."""
    assert counts() == baseline()


def test_texts_of_the_product_and_of_its_pages_are_plain():
    found = {
        f'{name_of(path)}: {" ".join(text.split())[:79]}'
        for path in files()
        if is_plain(name_of(path))
        for _, text in texts(path)
        if stumbles(text)
    }
    assert not found


def test_the_path_of_a_file_tells_whether_it_is_plain():
    assert is_plain('doc/source/user/index.rst')
    assert is_plain('nova_fairness/cluster/service.py')
    assert not is_plain('doc/source/contributor/index.rst')
    assert not is_plain('fairness_lab/node_sim/kernel.py')


if __name__ == '__main__':
    if sys.argv[1:] == ['--write']:
        write()
    else:
        show(sys.argv[1:])
