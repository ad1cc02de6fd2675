#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0

# All tests of the project by one command. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

V2=tests/functional/test_cgroup_v2.py
NETWORKS=tests/functional/test_network_real.py
# Of Nova, beside the newest; they run what is marked for each release.
RELEASES=(31 32 33)
# Their tests, and some of what puts them together, show whether every branch of
# the pure rooms is tried. To watch takes as long as the tests themselves: only
# --full does, and the others, which try hardly a branch more, go without.
WATCHED=(tests/unit/{agent,collect,decide,exchange}
    tests/unit/{measure,model,observe,planners,relay,shares}
    tests/unit/cluster/{messages,store}
    tests/unit/cluster/{accounts/test_accounts,api/test_requests}.py
    tests/unit/cluster/admission/test_{interventions,start_estimates}.py
    tests/unit/cluster/move_plans/{goals,test_plan_controller.py}
    tests/unit/cluster/{usage/test_spending,test_snapshot,test_ways}.py)

usage() {
    cat <<'TEXT'
Usage: tools/test.sh [--unit | --functional | --full | --dashboard |
                      --changed [SINCE]] [--help]

Installs what it needs (apt, pip into .venv), then runs:

  (no option)    everything below except the long scenarios; needs root
  --unit         style, types, shell, docs, release notes, samples, unit and
                 integration tests (real sockets and Redis); needs no root
                 once the system packages are there
  --functional   only the tests on real guests, short scenarios, and on a real
                 OpenStack; needs root
  --dashboard    only the pages of Horizon, in a real browser, with a virtual
                 environment of their own
  --changed      style, types, and the unit and integration tests that a change
                 since the revision SINCE of git can affect (default: the
                 upstream branch, else HEAD); says which others it can affect
  --full         everything, also the long scenarios and what repeats what a
                 quick test shows; takes hours; needs root

Each step prints how long it took; some run at the same time. A step that fails
prints the end of its output and ends the run with exit code 1; all output is
in build/logs/. What ran and how it ended is in build/outcome.json; --full
writes build/full.json instead.
TEXT
}

parse_options() {
    UNIT=1 FUNCTIONAL=1 SELECTION='not slow' OUTCOME=build/outcome.json
    DASHBOARD=0 CHANGED=0 SINCE=()
    if [[ ${1:-} == --changed ]]; then
        (($# <= 2)) || die "one revision at most, not: ${*:2}"
        CHANGED=1 FUNCTIONAL=0 SINCE=("${@:2}")
        return
    fi
    (($# <= 1)) || die "one option at most, not: $*"
    case ${1:-} in
        '') ;;
        --unit) FUNCTIONAL=0 ;;
        --functional) UNIT=0 ;;
        --dashboard) UNIT=0 FUNCTIONAL=0 DASHBOARD=1 ;;
        --full)
            SELECTION='real or not real' OUTCOME=build/full.json
            export FAIRNESS_FULL=1
            ;;
        --help | -h) usage && exit 0 ;;
        *) die "unknown option: $1 (see --help)" ;;
    esac
    ((EUID == 0 || !FUNCTIONAL)) ||
        die 'real guests need root; tools/test.sh --unit does not'
}

scripts() {
    grep -rlE '^(#!.*[/ ](ba)?sh|# shellcheck shell=.*)$' \
        --include='*.sh' --include=run --include=settings \
        --include=nova-fairness .ci devstack tools \
        nova_fairness oslo_messaging_zmq fairness_lab tests
}

shell_check() {
    # Only what devstack sources is written in its style.
    bashate --error . devstack/plugin.sh devstack/settings devstack/lib/*
    if ! command -v shellcheck; then
        echo 'shellcheck is not installed: only the syntax is checked'
        scripts | while read -r script; do bash -n "$script"; done
        return
    fi
    # shellcheck disable=SC2046 # names of scripts hold no blanks
    shellcheck -x $(scripts)
}

samples() {
    mkdir -p build/etc
    oslo-config-generator \
        --config-file etc/nova-fairness/nova-fairness-config-generator.conf \
        --output-file build/etc/nova-fairness.conf.sample
    oslo-config-generator \
        --config-file etc/nova-fairness/nova-fairness-api-config-generator.conf \
        --output-file build/etc/nova-fairness-api.conf.sample
    oslopolicy-sample-generator \
        --config-file etc/nova-fairness/nova-fairness-policy-generator.conf \
        --output-file build/etc/policy.yaml.sample
    grep -q '^\[fairness\]' build/etc/nova-fairness.conf.sample
}

documents() {
    rm -rf doc/build/html
    sphinx-build -W --keep-going -q -b html doc/source doc/build/html
}

style_checks() {
    step 'style: ruff check' ruff check .
    step 'style: ruff format' ruff format --check .
    step 'shell scripts' shell_check
    step 'configuration sample' samples
    step 'release notes' reno lint
    step 'documentation' documents
}

type_checks() {
    step 'types: mypy strict' mypy
}

# tests NAME ARGUMENT...: a step of pytest that leaves a report.
tests() {
    local report=$RESULTS/${1// /-}.xml
    step "$1" python -m pytest -q --durations=25 --junitxml="$report" "${@:2}"
}

# real_tests NAME ARGUMENT...: tests of processes, guests and clouds, which fail
# on a machine that stands still for a while. One that fails is tried once more,
# and the end of the run names it.
real_tests() {
    tests "$1" --reruns 1 "${@:2}"
}

# Databases of tests wait for their disk a quarter of the time; memory does not.
in_memory() {
    local free
    free=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
    ((${free:-0} < 2000000)) || MEMORY=$(mktemp -d -p /dev/shm)
}

# The pure rooms are named in pyproject.toml; so is the floor. Without stealing,
# one process has most of the cluster service's tests, and the other waits.
unit_tests() {
    local ignored=() faster=()
    # The others mostly wait, and are late if they wait for a CPU, too.
    renice -n 10 -p "$BASHPID" >/dev/null
    [[ -z $MEMORY ]] || faster=(--basetemp="$MEMORY/tests"
        -o tmp_path_retention_policy=failed)
    if [[ -v FAIRNESS_FULL ]]; then
        tests 'unit tests of pure rooms' -n 2 --dist worksteal \
            -m "$SELECTION" "${faster[@]}" "${WATCHED[@]}" --cov \
            --cov-report=term:skip-covered
        ignored=("${WATCHED[@]/#/--ignore=}")
    fi
    tests 'unit tests' -n 2 --dist worksteal -m "$SELECTION" tests/unit \
        "${faster[@]}" "${ignored[@]}"
}

# They mostly wait, so four at a time.
integration_tests() {
    real_tests 'integration tests' -n 4 --dist loadfile -m "$SELECTION" \
        tests/integration --ignore tests/integration/nova \
        --ignore tests/integration/dashboard
}

# One at a time: they measure what guests get.
guest_tests() {
    real_tests 'functional tests' -m "($SELECTION) and not beside" \
        tests/functional --ignore "$NETWORKS"
}

# Namespaces of their own, and links far below what a CPU can send.
network_tests() {
    real_tests 'networks' -n 2 -m "$SELECTION" "$NETWORKS"
}

# A machine of its own, emulated. It takes what the measured guests, most of
# which keep to one CPU, and networks leave.
v2_tests() {
    real_tests 'control groups v2' -m "$SELECTION" "$V2"
}

# What measures no guest's part of the CPUs, so that others may run beside it.
unmeasured_tests() {
    real_tests 'functional tests beside' -m "($SELECTION) and beside" \
        tests/functional tests/chaos --ignore "$V2"
}

# Nova's tests come last on the other side, and wait for them.
cloud_packages() {
    step 'OpenStack packages' python -m tests.fixtures.nova_cloud prepare
}

# They bring up an OpenStack of their own.
nova_tests() {
    real_tests 'nova tests' -m "$SELECTION" tests/integration/nova
    [[ "$OUTCOME" == build/full.json ]] || return 0
    NOVA_CLOUD_QUEUE=1 real_tests 'nova tests with the queue' \
        -m "$SELECTION" tests/integration/nova
    local release
    for release in "${RELEASES[@]}"; do
        NOVA_CLOUD_RELEASE=$release real_tests "nova $release tests" \
            -m 'not slow or each_release' \
            tests/integration/nova/test_{held_casts,queue,service,sharing}.py
    done
}

dashboard_tests() {
    dashboard_environment
    step 'dashboard' "$DASHBOARD_VENV/bin/python" -m pytest -q --durations=5 \
        --reruns 1 --junitxml="$RESULTS/dashboard.xml" \
        tests/integration/dashboard
}

# What needs guests or a cloud is only named: it takes most of an hour.
changed_tests() {
    local chosen others
    mapfile -t chosen < <(python tools/changed.py "${SINCE[@]}")
    ((${#chosen[@]})) || die 'no tests found; is SINCE a revision?'
    mapfile -t others < <(printf '%s\n' "${chosen[@]}" |
        grep -E '^tests/(functional|chaos|integration/(nova|dashboard))/')
    mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" |
        grep -vE '^tests/(functional|chaos|integration/(nova|dashboard))/')
    tests 'tests of the change' -n 2 --dist worksteal -m "$SELECTION" \
        "${chosen[@]}"
    ((!${#others[@]})) ||
        printf 'Not run, and affected, too:\n%s\n' "${others[*]}"
}

measured_lane() {
    guest_tests
    nova_tests
}

unmeasured_lane() {
    cloud_packages
    v2_tests
    unmeasured_tests
    network_tests
}

run_all() {
    if ((DASHBOARD)); then
        dashboard_tests
        return
    fi
    ((!UNIT)) || side_by_side style_checks type_checks
    if ((CHANGED)); then
        changed_tests
        return
    fi
    in_memory
    local lanes=()
    ((!UNIT)) || lanes+=(unit_tests integration_tests)
    ((!FUNCTIONAL)) || lanes+=(dashboard_tests)
    side_by_side "${lanes[@]}"
    ((!FUNCTIONAL)) || side_by_side measured_lane unmeasured_lane
}

# The outcome is written however the run ends.
finish() {
    local code=$?
    end_lanes
    [[ -z $MEMORY ]] || rm -rf "$MEMORY"
    [[ ! -d $RESULTS ]] ||
        python tools/outcome.py "$RESULTS" "$code" "$OUTCOME"
}

main() {
    local began=$EPOCHREALTIME
    MEMORY=''
    parse_options "$@"
    cd "$TOP"
    if ((DASHBOARD)); then
        environment compile dashboard
    elif ((FUNCTIONAL)); then
        environment compile test lab nova dashboard
    else
        environment compile test
    fi
    RESULTS=$TOP/build/results
    export STEPS=$RESULTS/steps FAIRNESS_RERUNS=$RESULTS/reruns
    rm -rf "$RESULTS" && mkdir -p "$RESULTS"
    trap finish EXIT
    run_all
    printf '\nEverything holds, after %s s.\n' "$(elapsed "$began")"
}

main "$@"
