# SPDX-License-Identifier: Apache-2.0

"""The directive that lists what the manual claims of a document."""

from docutils import nodes
from sphinx.util import docutils

from fairness_lab.evidence import claims


def text(document: str) -> str:
    """Title of a document, and a definition list of its claims."""
    evidence = claims.read()
    items = [
        f'``{each.name}``\n    {_sentences(each)}\n'
        for each in evidence.chosen([document])
    ]
    return '\n'.join([f'{evidence.documents[document]}.\n', *items])


def _sentences(claim: claims.Claim) -> str:
    numbers = '; '.join(
        f'{label}: **{value:.4g}**{_published(claim, label)}'
        for label, value in claim.recorded.items()
    )
    cost = f'{claim.cost_s:g} s'
    needed = f'Needs {claim.needs}.' if claim.needs else f'Takes {cost}.'
    tolerance = f'Tolerance {claim.within:g}' if claim.within else 'Exact'
    differs = f' Not comparable: {claim.differs}' if claim.differs else ''
    return (
        f'{claim.says} {numbers}.{differs} {tolerance}: {claim.because}'
        f' Told on :doc:`/{claim.page}`, recorded in'
        f' :file:`benchmarks/results/{claim.file}`. {needed}'
        f' ``{claim.command}``'
    )


def _published(claim: claims.Claim, label: claims.Label) -> str:
    number = claim.published.get(label)
    return '' if number is None else f' (published {number:g})'


def rankings() -> str:
    """A definition list of all rankings."""
    return '\n'.join(
        f'``{each.name}``\n    {_ranked(each)}\n'
        for each in claims.read().rankings
    )


def _ranked(ranking: claims.Ranking) -> str:
    cases = ', '.join(ranking.cases)
    others = ', '.join(f'``{each}``' for each in ranking.others)
    outcome = 'noise' if ranking.is_noise else 'better'
    return (
        f'{ranking.says} ``{ranking.measure}`` of ``{ranking.first}`` beside'
        f' {others}: {outcome} for {cases}. Told on :doc:`/{ranking.page}`.'
    )


class Claims(docutils.SphinxDirective):
    """``.. claims:: DOCUMENT``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        return self.parse_text_to_nodes(text(self.arguments[0]))


class Rankings(docutils.SphinxDirective):
    """``.. rankings::``."""

    def run(self) -> list[nodes.Node]:
        """The definition list."""
        return self.parse_text_to_nodes(rankings())


def setup(app: object) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('claims', Claims)
    app.add_directive('rankings', Rankings)
    return {'parallel_read_safe': True}
