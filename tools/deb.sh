#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0


# Builds the Debian packages and the wheel by one command. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

usage() {
    cat <<'TEXT'
Usage: tools/deb.sh [--extras LIST] [--nova RELEASE] [--out DIR] [--help]

Builds what is committed, with debhelper and dh-virtualenv:

  nova-fairness_VERSION_ARCH.deb         agent and tools, with what they need
  nova-fairness-cluster_VERSION_all.deb  services of the queue before Nova
  nova-fairness-client_VERSION_all.deb   "openstack fairness"
  nova-fairness-dashboard_VERSION_all.deb  pages of Horizon
  nova_fairness-VERSION-*.whl            for nova-api's own Python environment

  --extras LIST  extras of the package that go into the first one (default:
                 api,cluster,nova); without cluster there is no second one
  --nova RELEASE release of Nova that goes into the first one: that of the
                 cloud's conductors (31 to 34; default: the newest; 31 on
                 Debian 13, whose own OpenStack it is)
  --out DIR      where both are put (default: build/packages)

Installs what it needs (apt); needs root for that only. Needs PyPI.
TEXT
}

parse_options() {
    EXTRAS=api,cluster,nova OUT=$TOP/build/packages NOVA=$(nova_of_debian)
    while (($#)); do
        case $1 in
            --extras) EXTRAS=${2?--extras needs a list} && shift 2 ;;
            --nova) NOVA=${2?--nova needs a release} && shift 2 ;;
            --out) OUT=${2?--out needs a directory} && shift 2 ;;
            --help | -h) usage && exit 0 ;;
            *) die "unknown option: $1 (see --help)" ;;
        esac
    done
    [[ $NOVA =~ ^(|3[1-4])$ ]] ||
        die "unknown release of Nova: $NOVA (expected 31, 32, 33 or 34)"
}

# nova_of_debian: the release that this Debian has packages of, if it is one
# that is supported.
nova_of_debian() {
    # shellcheck source=/dev/null
    [[ $(. /etc/os-release && echo "$ID $VERSION_ID") != 'debian 13' ]] ||
        echo 31
}

# committed DIRECTORY: a copy of what is committed, with its history, from
# which the version is told.
committed() {
    git -C "$TOP" rev-parse HEAD >/dev/null 2>&1 ||
        die 'this is no clone with git: what is to be packaged?'
    rm -rf "$1"
    git clone -q "$TOP" "$1"
}

# wheel SOURCE DIRECTORY
wheel() {
    rm -rf "$2"
    "$WORK/tools/bin/python" -m pip wheel --disable-pip-version-check \
        --no-deps --wheel-dir "$2" "$1"
    # What building left there is not to be packaged.
    git -C "$1" clean -qfdx
}

# version_of WHEEL: the second part of its name.
version_of() {
    local name=${1##*/}
    name=${name#*-}
    echo "${name%%-*}"
}

# changelog VERSION: in Debian's order, .dev comes before the release.
changelog() {
    printf 'nova-fairness (%s) unstable; urgency=medium\n\n' \
        "${1/.dev/\~dev}"
    printf '  * As committed in %s.\n\n' "$(git -C "$TOP" rev-parse HEAD)"
    printf ' -- the nova-fairness developers <nova-fairness@localhost>  %s\n' \
        "$(git -C "$TOP" log -1 --format=%cD)"
}

# package SOURCE VERSION: pip's cache and configuration stay in use, though
# debhelper gives the build another home.
package() {
    changelog "$2" >"$1/debian/changelog"
    cd "$1"
    PIP_CACHE_DIR=$("$WORK/tools/bin/python" -m pip cache dir) \
        PBR_VERSION=$2 FAIRNESS_EXTRAS=$EXTRAS FAIRNESS_NOVA=$NOVA \
        dpkg-buildpackage --build=binary --unsigned-changes --no-pre-clean
}

main() {
    local source version
    parse_options "$@"
    WORK=$TOP/build/deb
    source=$WORK/source
    cd "$TOP"
    system_packages compile package
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
    export GIT_CONFIG_VALUE_0='*'
    mkdir -p "$WORK" "$OUT"
    rm -f "$WORK"/*.deb
    step 'copy' committed "$source"
    step 'tools' python3 -m venv --clear "$WORK/tools"
    step 'wheel' wheel "$source" "$WORK/wheel"
    version=$(version_of "$WORK"/wheel/*.whl)
    step 'package' package "$source" "$version"
    cp "$WORK"/wheel/*.whl "$WORK"/*.deb "$OUT/"
    printf '\n%s\n' "$OUT"/*"${version/.dev/\~dev}"*.deb "$OUT"/*"$version"*.whl
}

main "$@"
