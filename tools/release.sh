#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0


# Builds the source distribution and the wheel of a version. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

usage() {
    cat <<'TEXT'
Usage: tools/release.sh VERSION [--out DIR] [--help]

Builds what is committed as VERSION, for example 1.0.0:

  nova_fairness-VERSION.tar.gz            source, installs without git
  nova_fairness-VERSION-py3-none-any.whl  built from that source, without git

and checks both with "twine check --strict".

  --out DIR  where both are put (default: build/release/VERSION)

It tags nothing and uploads nothing. Needs PyPI.
TEXT
}

parse_options() {
    VERSION='' OUT=''
    while (($#)); do
        case $1 in
            --out) OUT=${2?--out needs a directory} && shift 2 ;;
            --help | -h) usage && exit 0 ;;
            -*) die "unknown option: $1 (see --help)" ;;
            *) VERSION=$1 && shift ;;
        esac
    done
    [[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+(\.0?(a|b|rc|dev)[0-9]+)?$ ]] ||
        die "expected a version like 1.0.0, not '$VERSION' (see --help)"
    OUT=${OUT:-$TOP/build/release/$VERSION}
}

# distributions SOURCE: the wheel is built from what the source one holds.
distributions() {
    PBR_VERSION=$VERSION "$WORK/tools/bin/python" -m build --outdir "$OUT" "$1"
}

main() {
    parse_options "$@"
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
    export GIT_CONFIG_VALUE_0='*'
    git -C "$TOP" rev-parse HEAD >/dev/null 2>&1 ||
        die 'this is no clone with git: what is to be released?'
    mkdir -p "$OUT"
    step 'copy' git clone -q "$TOP" "$WORK/source"
    python3 -m venv "$WORK/tools"
    step 'tools' "$WORK/tools/bin/python" -m pip install -q build twine
    step 'build' distributions "$WORK/source"
    step 'twine check' "$WORK/tools/bin/python" -m twine check --strict \
        "$OUT/nova_fairness-$VERSION"{.tar.gz,-py3-none-any.whl}
    printf '%s\n' "$OUT/nova_fairness-$VERSION"*
}

main "$@"
