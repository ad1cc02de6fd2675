#!/bin/bash
# shellcheck shell=bash
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

# The devstack plugin of nova-fairness: what is done when. devstack sources
# it with a mode and a phase; how it is done is in lib/nova-fairness.

# Save trace setting
_FAIRNESS_PLUGIN_XTRACE=$(set +o | grep xtrace)
set +o xtrace

# shellcheck source=devstack/lib/nova-fairness
source "$(dirname "${BASH_SOURCE[0]}")/lib/nova-fairness"

if is_fairness_enabled; then
    if [[ "$1" == "stack" && "$2" == "pre-install" ]]; then
        echo_summary "Installing system packages of nova-fairness"
        install_fairness_packages
    elif [[ "$1" == "stack" && "$2" == "install" ]]; then
        echo_summary "Installing nova-fairness"
        install_fairness
    elif [[ "$1" == "stack" && "$2" == "post-config" ]]; then
        echo_summary "Configuring nova-fairness"
        configure_fairness
    elif [[ "$1" == "stack" && "$2" == "extra" ]]; then
        echo_summary "Starting nova-fairness"
        start_fairness
    elif [[ "$1" == "unstack" ]]; then
        stop_fairness
    elif [[ "$1" == "clean" ]]; then
        stop_fairness
        cleanup_fairness
    fi
fi

# Restore xtrace
$_FAIRNESS_PLUGIN_XTRACE
