# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How Sphinx builds the documentation."""

extensions = [
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

autodoc_typehints = 'description'
autodoc_member_order = 'bysource'
pygments_style = 'native'
