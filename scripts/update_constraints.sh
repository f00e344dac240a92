#!/bin/sh
# Write constraints.txt: every package that any extra, or the build, can install, as name==version.
# Versions already in the file stay unless --upgrade is given.
set -eu
cd "$(dirname "$0")/.."

if ! uv --version >/dev/null 2>&1; then
    echo "error: this needs uv; pip install uv" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# setuptools builds Spark's source package and ours; pip is for environments made without uv.
printf 'setuptools\npip\n' >"$work/build.in"
test ! -f constraints.txt || cp constraints.txt "$work/out.txt"

# For every platform at once, with the versions that run on the oldest Python. The markers that say which platform
# needs what are dropped: a constraint for a package that is not installed does no harm.
uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --all-extras "$@" \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
    --output-file "$work/out.txt" pyproject.toml "$work/build.in" >/dev/null
sed -n 's/^\([A-Za-z0-9._-]*==[^ ;]*\).*/\1/p' "$work/out.txt" | LC_ALL=C sort >constraints.txt

twice=$(cut -d= -f1 constraints.txt | uniq -d)
if [ -n "$twice" ]; then
    echo "error: more than one version of: $twice" >&2
    exit 1
fi
