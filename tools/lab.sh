#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0

# Runs one scenario on real guests twice, without and with the agent, and
# compares the two. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

usage() {
    cat <<'TEXT'
Usage: tools/lab.sh [SCENARIO] [OPTION...]

Installs what it needs (apt, pip into .venv), runs the scenario (default:
one-node-cpu) without and with the agent, and compares the two runs. Options
such as --metric, --policy, --interval and --duration go to both runs, and so
does --cpu-weight, which leaves more of the machine to others; see
nova-fairness-lab run --help. SCENARIO may be a YAML file. Needs root.

Results: results/SCENARIO/{without,with}/ and the comparison in
results/SCENARIO/. nova-fairness-lab list names the scenarios.
TEXT
}

FAILED=''

# run_scenario SCENARIO DIRECTORY OPTION...
run_scenario() {
    local scenario=$1 directory=$2 code=0
    shift 2
    rm -rf "$directory"
    nova-fairness-lab run "$scenario" --out "$directory" "$@" || code=$?
    ((code == 0)) && return
    # A run that was judged has results; the comparison is worth seeing.
    [[ $code == 1 && -f $directory/result.json ]] ||
        die "nova-fairness-lab run $scenario failed (exit code $code)"
    FAILED+=" $directory"
}

show_results() {
    local found
    printf '\nResults:\n'
    find "$1" -type f \( -name '*.txt' -o -name '*.json' -o -name '*.csv' \
        -o -name '*.png' \) | sort | while read -r found; do
        printf '  %s\n' "$found"
    done
}

main() {
    local scenario=one-node-cpu results
    case ${1:-} in
        --help | -h) usage && exit 0 ;;
        -* | '') ;;
        *) scenario=$1 && shift ;;
    esac
    ((EUID == 0)) || die 'real guests need root: sudo tools/lab.sh'
    trap 'die interrupted' INT TERM
    cd "$TOP"
    environment compile lab
    results=results/$(basename "${scenario%.yaml}")
    printf '\n== %s without the agent\n' "$scenario"
    run_scenario "$scenario" "$results/without" --no-agents "$@"
    printf '\n== %s with the agent\n' "$scenario"
    run_scenario "$scenario" "$results/with" "$@"
    printf '\n== %s compared\n' "$scenario"
    nova-fairness-lab compare "$results/without" "$results/with" \
        --out "$results" || die "nova-fairness-lab compare failed"
    show_results "$results"
    [[ -z $FAILED ]] || die "a check did not pass, see the tables above:$FAILED"
}

main "$@"
