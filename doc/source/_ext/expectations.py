# SPDX-License-Identifier: Apache-2.0

"""The directive that lists what a run of the laboratory can be judged by."""

from docutils import nodes
from sphinx.util import docutils

from fairness_lab.results import kinds

_SUBJECTS = {'vms': 'the VM', 'users': 'the user', 'nodes': 'the node'}
_OTHERS = 'one VM has than others (``to``)'
_RUN = 'run'


def text(who: str) -> str:
    """Definition list of the checks of ``vms``, ``users``, ``nodes``, ``run``.

    :param who: what they judge.
    """
    subject = '' if who == _RUN else who
    return '\n'.join(
        f'``{name}``\n    {_sentence(kind)}\n'
        for name, kind in kinds.KINDS.items()
        if kind.who == subject
    )


def _sentence(kind: kinds.ExpectationKind) -> str:
    says = kind.says
    if not kind.who:
        says = says.replace('{}: ', 'each stretch or event: ')
    says = says.format(_OTHERS if kind.compares else _SUBJECTS.get(kind.who))
    words = ' or '.join(f'``{each}``' for each in kind.around)
    known = f' ``around`` may be {words}.' if words else ''
    return f'{says[0].upper()}{says[1:]}.{known}'


class Expectations(docutils.SphinxDirective):
    """``.. expectations:: WHO``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        return self.parse_text_to_nodes(text(self.arguments[0]))


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('expectations', Expectations)
    return {'parallel_read_safe': True}
