# SPDX-License-Identifier: Apache-2.0

"""How Sphinx builds the release notes."""

extensions = ['openstackdocstheme', 'reno.sphinxext']

project = 'nova-fairness release notes'
copyright = 'the nova-fairness developers'
root_doc = 'index'
exclude_patterns = []

html_theme = 'openstackdocs'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_bug_project = ''
openstackdocs_bug_tag = ''
openstackdocs_repo_name = ''
openstackdocs_use_storyboard = False
