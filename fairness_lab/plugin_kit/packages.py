# SPDX-License-Identifier: Apache-2.0

"""New packages with one plugin: names, templates and files.

A package contains an example plugin, its entry point, the test that runs the
contract of its kind, a scenario for the simulator, a notebook and a README.
"""

from collections.abc import Mapping
import dataclasses
import importlib.util
import json
import keyword
import pathlib
import re
import string

from nova_fairness import exception
from nova_fairness import plugins

TEMPLATES = pathlib.Path(__file__).parent / 'templates'
"""Folder of the templates: files of all kinds, and a folder for each kind."""

_LONGEST_NAME = 40
_NAME = re.compile(r'[a-z][a-z0-9]*([-_][a-z0-9]+)*')


@dataclasses.dataclass(frozen=True)
class PluginKind:
    """A kind of plugin for which a package can be created.

    :ivar noun: word for the kind in texts.
    :ivar group: last part of the group of entry points.
    :ivar simulate: arguments of ``nova-fairness-sim`` that run the scenario.
    :ivar compare: arguments that compare the plugin with others.
    :ivar use: paragraph of the README: how an operator selects the plugin.
    """

    noun: str
    group: str
    simulate: str
    compare: str
    use: str


KINDS: Mapping[str, PluginKind] = {
    'metric': PluginKind(
        'metric',
        'metrics',
        'run scenario.yaml --metric $plugin --policy foresight --out result',
        'compare scenario.yaml --metrics $plugin,DominantShareMetric'
        ' --policies foresight',
        'Install the package on every compute node, restart the agents, and'
        ' select it::\n\n   openstack fairness metric set $plugin',
    ),
    'policy': PluginKind(
        'policy',
        'policies',
        'run scenario.yaml --metric GreedinessMetric --policy $plugin'
        ' --out result',
        'compare scenario.yaml --metrics GreedinessMetric'
        ' --policies $plugin,feedback,none',
        'Install the package on every compute node, restart the agents, and'
        ' select it::\n\n   openstack fairness policy set $plugin',
    ),
    'order': PluginKind(
        'order of the queue',
        'orders',
        'cluster run scenario.yaml --order $plugin --out result',
        'cluster compare scenario.yaml --orders $plugin,fair_tree,fifo',
        'Install the package beside every ``nova-fairness-cluster``, and'
        ' select it::\n\n   [fairness_cluster]\n   order = $plugin',
    ),
    'victims': PluginKind(
        'choice of victims',
        'victims',
        'cluster run scenario.yaml --order fair_tree --victims $plugin'
        ' --out result',
        'cluster compare scenario.yaml --orders fair_tree'
        ' --victims $plugin,least',
        'Install the package beside every ``nova-fairness-cluster``, and'
        ' select it::\n\n   [fairness_cluster]\n   room_victims = $plugin',
    ),
}
"""Kinds by the word on the command line."""


@dataclasses.dataclass(frozen=True)
class PluginPackage:
    """A new package: its names and its kind.

    :ivar kind: key of :data:`KINDS`.
    :ivar name: name from the command line, such as ``burst-credits``.
    """

    kind: str
    name: str

    @property
    def distribution(self) -> str:
        """Name for pip, with hyphens."""
        return self.name.replace('_', '-')

    @property
    def module(self) -> str:
        """Name of the Python package, with underscores."""
        return self.name.replace('-', '_')

    @property
    def class_name(self) -> str:
        """Name of the class: ``BurstCredits``."""
        return ''.join(word.capitalize() for word in self.module.split('_'))

    @property
    def plugin(self) -> str:
        """Name of the entry point: that of the class for a metric."""
        return self.class_name if self.kind == 'metric' else self.module

    def check(self) -> None:
        """Check that the names can be used.

        :raises BadPluginName: if the name has a wrong form or exists already.
        """
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise exception.BadPluginName(
                f'{self.kind} {self.name}: expected at most'
                f' {_LONGEST_NAME} characters, lower-case words of a to z and'
                ' 0 to 9 with - or _ between them, such as burst-credits'
            )
        if keyword.iskeyword(self.module) or _exists(self.module):
            raise exception.BadPluginName(
                f'{self.kind} {self.name}: Python has a module'
                f' {self.module} already; choose another name'
            )
        if self.plugin in _installed(self.kind):
            raise exception.BadPluginName(
                f'{self.kind} {self.name}: a {KINDS[self.kind].noun}'
                f' {self.plugin} is installed already; choose another name'
            )

    def files(self) -> dict[pathlib.PurePath, str]:
        """Text of every file, by its path in the package."""
        texts = self._template_texts()
        package, kind = pathlib.PurePath(self.module), self.kind
        test = pathlib.PurePath('tests', f'test_{self.module}.py')
        return {
            pathlib.PurePath('README.rst'): _fill_template(
                'README.rst', texts
            ),
            pathlib.PurePath('pyproject.toml'): _fill_template(
                'pyproject.toml', texts
            ),
            pathlib.PurePath('scenario.yaml'): _fill_template(
                f'{kind}/scenario.yaml', texts
            ),
            pathlib.PurePath('notebook.ipynb'): _fill_template(
                f'{kind}/notebook.ipynb', texts
            ),
            package / '__init__.py': f'"""{self._title}."""\n',
            package / f'{kind}.py': _fill_template(f'{kind}/plugin.py', texts),
            test: _fill_template(f'{kind}/test.py', texts),
        }

    @property
    def _title(self) -> str:
        noun = KINDS[self.kind].noun
        return f'{noun[0].upper()}{noun[1:]} {self.plugin}'

    def _template_texts(self) -> dict[str, str]:
        kind = KINDS[self.kind]
        names = {
            'kind': self.kind,
            'noun': kind.noun,
            'group': kind.group,
            'distribution': self.distribution,
            'module': self.module,
            'class_name': self.class_name,
            'plugin': self.plugin,
            'title': self._title,
            'title_line': '=' * len(self._title),
        }
        for name in ('simulate', 'compare', 'use'):
            text = string.Template(getattr(kind, name))
            names[name] = text.substitute(names)
        names['compare'] = _option_lines_in_json(
            f'nova-fairness-sim {names["compare"]}'
        )
        return names


def write(package: PluginPackage, directory: pathlib.Path) -> None:
    """Write all files of a package.

    :param package: with names that were checked.
    :param directory: folder that exists.
    """
    for path, text in package.files().items():
        target = directory / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding='utf-8')


def _option_lines_in_json(command: str) -> str:
    """Return a command with a line for each option, for a string of JSON."""
    return json.dumps(command.replace(' --', '\n    --'))[1:-1]


def _fill_template(template: str, texts: Mapping[str, str]) -> str:
    path = TEMPLATES / f'{template}.in'
    return string.Template(path.read_text('utf-8')).substitute(texts)


def _exists(module: str) -> bool:
    return module == 'tests' or importlib.util.find_spec(module) is not None


def _installed(kind: str) -> Mapping[str, str]:
    describe = {
        'metric': plugins.describe_metrics,
        'policy': plugins.describe_policies,
        'order': plugins.describe_orders,
        'victims': plugins.describe_victims,
    }
    return describe[kind]()
