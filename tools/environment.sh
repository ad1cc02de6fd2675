# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# What tools/test.sh, tools/lab.sh and tools/nova.sh share: the system packages
# of bindep.txt, the virtual environments, and steps that say what they do.
# Sourced, never run.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$TOP/.venv
DASHBOARD_VENV=$TOP/build/dashboard
LOGS=$TOP/build/logs
LANES=()
trap end_lanes EXIT

# Images of Python in containers say it. Each program would then translate all
# its modules anew, which takes longer than what most of them do.
unset PYTHONDONTWRITEBYTECODE

die() {
    printf '\n%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# step NAME COMMAND...: run it, keep its output in a file, say how long it
# took; on failure show the end of the output and stop. The command runs in a
# subshell of its own, because "set -e" is dead inside "command || ...". The
# line is written as a whole, since other steps may run at the same time. With
# STEPS set, that file gets a line of name, seconds and exit code.
step() {
    local name=$1 log began took status
    shift
    log=$LOGS/${name//[^a-z0-9]/-}.log
    mkdir -p "$LOGS"
    [[ ! -t 1 ]] || printf '%s ...\r' "$name"
    began=$EPOCHREALTIME
    set +e
    (set -e && "$@") >"$log" 2>&1 </dev/null
    status=$?
    set -e
    took=$(elapsed "$began")
    [[ -z ${STEPS:-} ]] ||
        printf '%s\t%s\t%s\n' "$name" "$took" "$status" >>"$STEPS"
    if ((status)); then
        printf '%-32s FAILED after %s s (exit code %d)\n\n' \
            "$name ..." "$took" "$status"
        tail -n "${TAIL_LINES:-60}" "$log"
        die "step \"$name\" failed; all of its output: $log"
    fi
    printf '%-32s%8s s\n' "$name ..." "$took"
}

# side_by_side FIRST SECOND...: run functions of steps at the same time, to the
# end of them all; fail if one did. Each has a process group of its own, since
# programs that bash starts in the background would ignore Ctrl-C.
side_by_side() {
    local lane status=0
    set -m
    for lane in "$@"; do
        ($lane) &
        LANES+=($!)
    done
    set +m
    for lane in "${LANES[@]}"; do
        wait "$lane" || status=$?
    done
    LANES=()
    ((!status)) || exit "$status"
}

# end_lanes: have what runs side by side end as by Ctrl-C, and wait for it.
end_lanes() {
    local lane
    for lane in "${LANES[@]}"; do
        kill -INT -- "-$lane" 2>/dev/null || true
        wait "$lane" || true
    done
}

elapsed() {
    awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'
}

# packages_of PROFILE...: names from bindep.txt for Debian; a line without a
# profile belongs to every one.
packages_of() {
    awk -v wanted=" $* " '
        /^[[:space:]]*(#|$)/ { next }
        {
            name = $1; platform = 1; profile = 0; any = 0
            selectors = $0; sub(/^[^[]*\[?/, "", selectors)
            sub(/\].*$/, "", selectors)
            if ($0 !~ /\[/) selectors = ""
            count = split(selectors, part, " ")
            for (i = 1; i <= count; i++) {
                if (part[i] ~ /^platform:/) {
                    platform = (part[i] == "platform:dpkg")
                } else {
                    any = 1
                    if (index(wanted, " " part[i] " ")) profile = 1
                }
            }
            if (platform && (profile || !any)) print name
        }' "$TOP/bindep.txt"
}

missing_packages() {
    local name
    packages_of "$@" | while read -r name; do
        dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null |
            grep -qx installed || echo "$name"
    done
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update || echo 'apt-get update failed; trying with what is known'
    apt-get install -y --no-install-recommends "$@" && return
    echo "apt could not install $*: is the Debian mirror reachable?"
    return 1
}

# system_packages PROFILE...: install what is missing, if anything is.
system_packages() {
    local missing
    command -v dpkg-query >/dev/null || {
        echo 'Not a Debian system: bindep.txt lists what must be there.'
        return
    }
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    ((EUID == 0)) || die "these packages are missing: ${missing[*]}
Run this as root, or: sudo apt-get install ${missing[*]}"
    echo "installing ${#missing[@]} packages: ${missing[*]}"
    step 'system packages' apt_install "${missing[@]}"
}

find_python() {
    local name
    for name in python3 python3.13 python3.12 python3.11; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
            2>/dev/null && command -v "$name" && return
    done
    return 1
}

requirements_hash() {
    { "$1" -VV && cd "$TOP" && cat requirements.txt test-requirements.txt \
        doc/requirements.txt setup.cfg setup.py tools/environment.sh &&
        pwd; } |
        sha256sum | cut -d ' ' -f 1
}

# pbr asks git for the version: tell git that this checkout may be owned by
# somebody else, and pbr what to say where there is no git history.
version_from_git() {
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
    export GIT_CONFIG_VALUE_0=$TOP
    git -C "$TOP" rev-parse HEAD >/dev/null 2>&1 ||
        export PBR_VERSION=${PBR_VERSION:-0.0.1.dev0}
}

pip_install() {
    local attempt
    for attempt in 1 2 3; do
        # Compiled are the modules that are imported, and then.
        "$VENV/bin/python" -m pip install --disable-pip-version-check \
            --no-compile -e "${TOP}[api,client,cluster,lab,nova,sim]" \
            -r "$TOP/test-requirements.txt" \
            -r "$TOP/doc/requirements.txt" && return
        echo "attempt $attempt failed"
        sleep $((attempt * 5))
    done
    echo 'pip could not install the requirements: is PyPI reachable?'
    return 1
}

# virtual_environment: make .venv hold what the lists ask for; does nothing
# if it was made from the same lists by the same Python.
virtual_environment() {
    local python hash
    python=$(find_python) ||
        die 'Python 3.11 or newer is needed, and none is in PATH'
    hash=$(requirements_hash "$python")
    if [[ $(cat "$VENV/.made-from" 2>/dev/null) == "$hash" ]] &&
        "$VENV/bin/python" -c 'import nova_fairness' 2>/dev/null; then
        return
    fi
    rm -f "$VENV/.made-from"
    version_from_git
    step 'virtual environment' "$python" -m venv --clear "$VENV"
    step 'python packages' pip_install
    echo "$hash" >"$VENV/.made-from"
}

dashboard_packages() {
    local python
    python=$(find_python)
    "$python" -m venv --clear "$DASHBOARD_VENV"
    version_from_git
    "$DASHBOARD_VENV/bin/python" -m pip install \
        --disable-pip-version-check --no-compile \
        -e "${TOP}[api,cluster,dashboard]" \
        -r "$TOP/tests/integration/dashboard/pip.txt"
}

# dashboard_environment: a Horizon with the plugin in an environment of its own;
# in .venv it would bring other versions of what others need.
dashboard_environment() {
    local hash
    hash=$(cd "$TOP" && cat setup.cfg requirements.txt \
        tests/integration/dashboard/pip.txt | sha256sum)
    [[ $(cat "$DASHBOARD_VENV/.made-from" 2>/dev/null) != "$hash" ]] || return 0
    step 'dashboard packages' dashboard_packages
    echo "$hash" >"$DASHBOARD_VENV/.made-from"
}

# The laboratory takes its guests' kernel from the package archive, which some
# images of Debian come without.
package_archive() {
    command -v apt-cache >/dev/null || return 0
    apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 ||
        step 'package lists' apt-get update
}

# environment PROFILE...: everything a command of this project needs.
environment() {
    system_packages "$@"
    [[ " $* " != *' lab '* ]] || package_archive
    virtual_environment
    export PATH=$VENV/bin:$PATH
}
