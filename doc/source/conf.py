# SPDX-License-Identifier: Apache-2.0

"""How Sphinx builds the documentation."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / '_ext'))

extensions = [
    'alerts',
    'answer_fields',
    'claims',
    'expectations',
    'fractions',
    'metrics',
    'schema_fields',
    'settings',
    'cliff.sphinxext',
    'openstackdocstheme',
    'oslo_config.sphinxext',
    'oslo_config.sphinxconfiggen',
    'oslo_policy.sphinxext',
    'sphinx.ext.autodoc',
    'sphinx.ext.mathjax',
    'sphinx.ext.viewcode',
]

project = 'nova-fairness'
copyright = 'the nova-fairness developers'
root_doc = 'index'
exclude_patterns = []
man_pages = [
    (f'cli/{name}', name, description, '', 1)
    for name, description in (
        ('nova-fairness', 'share a compute node fairly between its users'),
        ('nova-fairness-keys', 'make and revoke the keys of nodes'),
        ('nova-fairness-ctl', 'ask agents and tell them what to do'),
        ('nova-fairness-status', 'check what a host needs'),
        ('nova-fairness-cluster', 'decide which waiting request starts next'),
        ('nova-fairness-relay', 'stand between nova-api and conductor'),
        ('nova-fairness-lab', 'run scenarios with real guests'),
        ('nova-fairness-sim', 'run policies on simulated clouds'),
        ('openstack-fairness', 'ask about fair sharing'),
    )
]
templates_path = []

html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_bug_project = ''
openstackdocs_bug_tag = ''
openstackdocs_repo_name = ''
openstackdocs_use_storyboard = False

config_generator_config_file = (
    '../../etc/nova-fairness/nova-fairness-config-generator.conf'
)
sample_config_basename = '_static/nova-fairness'

autoprogram_cliff_ignored = [
    '--column', '--fit-width', '--format', '--max-width', '--noindent',
    '--prefix', '--print-empty', '--quote', '--sort-column',
    '--sort-ascending', '--sort-descending', '--help',
]  # fmt: skip

autodoc_typehints = 'description'
autodoc_member_order = 'bysource'
pygments_style = 'native'
