# SPDX-License-Identifier: Apache-2.0

"""Texts and names of tests are plain: readers do not stumble over them.

This prints the texts that are not plain, of all files or of named folders:

    python -m tests.unit.test_language FOLDER ...
"""

import ast
from collections.abc import Iterator
import pathlib
import re
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
CODE = (
    'nova_fairness',
    'api_ext',
    'oslo_messaging_zmq',
    'fairness_lab',
    'fairness_dashboard',
    'benchmarks',
    'tools',
)
PAGES = (
    '*.rst',
    'doc/source/**/*.rst',
    'doc/source/**/*.inc',
    'releasenotes/notes/*.yaml',
)

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
TOKENS = re.compile('``(nobody|packed anew)``|^packed anew$')
"""Names of others: a user of Linux, a row of recorded results."""
TESTS = ('tests', 'nova_fairness/testing')
RIDDLE = re.compile(
    r'test_(?:\w*_)?(who|whoever|whom|what|whatever|nobody|somebody|anew'
    r'|of_which)(?:_\w*)?'
)
"""Names of tests that readers stumble over."""
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


def riddles(tree: ast.AST) -> list[str]:
    """Names of the tests of a module that are not plain."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and RIDDLE.fullmatch(node.name)
    ]


def name_of(path: pathlib.Path) -> str:
    """Path below the top of the tree."""
    return str(path.relative_to(TOP))


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
def test_the_language_check_counts_an_unclear_word(text):
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
def test_the_language_check_accepts_plain_text(text):
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


@pytest.mark.parametrize(
    'name',
    [
        'test_only_who_leads_acts',
        'test_nobody_starts',
        'test_a_host_gives_what_it_has',
        'test_a_name_that_nobody',
        'test_one_of_which_is_gone',
    ],
)
def test_riddle_is_found_in_the_name_of_a_test(name):
    assert riddles(ast.parse(f'def {name}(): pass')) == [name]


def test_plain_name_is_no_riddle():
    assert not riddles(ast.parse('def test_whole_hosts_start(): pass'))
    assert not riddles(ast.parse('def nobody(): pass'))


def test_all_names_of_tests_are_plain():
    found = {
        f'{name_of(path)}: {name}'
        for folder in TESTS
        for path in (TOP / folder).rglob('*.py')
        for name in riddles(ast.parse(path.read_text('utf-8')))
    }
    assert not found


def test_all_texts_are_plain():
    found = {
        f'{name_of(path)}: {" ".join(text.split())[:79]}'
        for path in files()
        for _, text in texts(path)
        if stumbles(text)
    }
    assert not found


if __name__ == '__main__':
    show(sys.argv[1:])
