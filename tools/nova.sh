#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0


# A real OpenStack with two compute nodes and fair servers. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

usage() {
    cat <<'TEXT'
Usage: tools/nova.sh [up [--queue | --dashboard] [--check] | shell [USER] |
                      run COMMAND...]

  up       installs what it needs (apt, pip), brings up Keystone, Placement,
           Glance, Nova and two compute nodes with an agent each, boots servers
           of two users and shows that they are steered; runs until Ctrl-C, and
           leaves nothing running. With --check it ends at once. Needs root.
           With --queue, or "tools/nova.sh --queue", requests wait in front of
           Nova: the cloud is filled, and one more request waits.
           With --dashboard, requests wait as well, a Horizon with the pages of
           the plugin and a Prometheus with the rules run, and the addresses of
           both are printed, with users and password.
  shell    opens a shell inside the network of the cloud that is up, with the
           credentials of USER: admin (the default), alice, bob, ...; TOKEN is a
           token of theirs, NOVA the endpoint of the compute service
  run      runs one command there, as the administrator

What shell and run start has the same share of the CPUs as the programs of the
cloud, and ends with it.

Ctrl-C or SIGTERM ends it at any time, with all that it started. One cloud can
be up at a time. Everything has its own network, so no port of this machine is used,
but for two of its loopback interface with --dashboard: all users of this
machine can log in there with the printed password. The logs of all programs are in
build/logs/nova-cloud/ afterwards.
TEXT
}

install() {
    environment "${PROFILES[@]}"
    [[ " ${PROFILES[*]} " != *' monitor '* ]] || dashboard_environment
}

main() {
    [[ ${1:-} != --queue && ${1:-} != --dashboard ]] || set -- up "$@"
    local command=${1:-up}
    case $command in
        --help | -h) usage && exit 0 ;;
        up | shell | run) ;;
        *) die "unknown command: $command (see --help)" ;;
    esac
    ((EUID == 0)) || die 'a cloud needs root: sudo tools/nova.sh'
    cd "$TOP"
    PROFILES=(compile lab nova)
    [[ " $* " != *' --dashboard '* ]] || PROFILES+=(monitor)
    if [[ $command == up ]]; then
        # In a process group of its own, so that SIGTERM ends apt and pip, too.
        side_by_side install
        environment "${PROFILES[@]}"
    else
        export PATH=$VENV/bin:$PATH
    fi
    exec python -m tests.fixtures.nova_cloud "$command" "${@:2}"
}

main "$@"
