#!/bin/bash
# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

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
