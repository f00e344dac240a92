#!/bin/sh
# Create .venv and install the package into it, editable, with pinned versions: scripts/setup_env.sh [extra,...]
# Needs Python 3.11 or newer; uses uv when it is there, venv and pip otherwise.
set -eu
cd "$(dirname "$0")/.."
extras=${1:-dev}
venv=.venv

say() { printf '%s\n' "$*" >&2; }
works() { "$@" >/dev/null 2>&1; }

find_python() {
    # Run each one: a name on PATH may be a version manager's stub that only prints an error.
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if works "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    say "error: no Python 3.11 or newer on PATH; install one, or name it: make PYTHON=/path/to/python3"
    return 1
}

create_with_venv() {
    python=$1
    if works "$python" -m venv "$venv"; then return; fi
    rm -rf "$venv"
    # Debian keeps venv's pip in a package of its own.
    if [ "$(id -u)" = 0 ] && works command -v apt-get; then
        say "python -m venv does not work here: installing python3-venv with apt-get ..."
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
        "$python" -m venv "$venv"
    elif works "$python" -m pip --version; then
        "$python" -m venv --without-pip "$venv"
        "$python" -m pip --python "$venv/bin/python" install --quiet pip
    else
        say "error: $python has neither venv nor pip; install python3-venv, or uv"
        return 1
    fi
}

if ! works "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python=$(find_python)
    rm -rf "$venv"
    say "Creating $venv with $("$python" --version) ..."
    if works uv --version; then uv venv --quiet --python "$python" "$venv"; else create_with_venv "$python"; fi
fi

say "Installing penstock[$extras] and its pinned dependencies (the first time, Spark is a download of some 400 MB) ..."
if works uv --version; then
    uv pip install --quiet --python "$venv/bin/python" \
        --constraint constraints.txt --build-constraint constraints.txt --editable ".[$extras]"
else
    # The build tools are pinned too; pip reads that from one variable or the other, depending on its age.
    export PIP_CONSTRAINT="$PWD/constraints.txt" PIP_BUILD_CONSTRAINT="$PWD/constraints.txt"
    export PIP_DISABLE_PIP_VERSION_CHECK=1
    # The pip that comes with an older Python builds Spark's source package in ways that are going away.
    "$venv/bin/python" -m pip install --quiet --upgrade pip
    "$venv/bin/python" -m pip install --quiet --editable ".[$extras]"
fi
