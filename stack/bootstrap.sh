#!/bin/sh
# Makes the virtual environment: stack/bootstrap.sh PYTHON VENV. Needs Python 3.11 or newer, and nothing else.
set -eu
python=$1
venv=$2

fail() {
    echo "error: $1" >&2
    exit 1
}

[ -n "$python" ] || fail "Python 3.11 or newer is needed; install it, or name it: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "$python is no Python 3.11 or newer; name another one: make PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python can't make virtual environments; on Debian and Ubuntu: apt install $(basename "$python")-venv"

# One that was cut off, or whose Python is gone, is made anew.
if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    echo "making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$python could not make $venv"
fi

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check "$@"
}

# uv installs the rest several times faster than pip would; its own hash is pinned like every other.
pins=$(mktemp)
trap 'rm -f "$pins"' EXIT
awk '/^uv==/ { on = 1 } on { print } on && !/\\$/ { exit }' requirements.txt > "$pins"
[ -s "$pins" ] || fail "requirements.txt pins no uv"
pip install --quiet --no-deps --require-hashes -r "$pins" || fail "uv could not be installed; see above"

# uv does not read pip's settings: a machine with a mirror or a certificate of its own has them there.
setting() {
    pip config get "global.$1" 2>/dev/null || true
}
UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}
UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(setting index-url)}}
UV_INDEX=${UV_INDEX:-${PIP_EXTRA_INDEX_URL:-$(setting extra-index-url)}}
UV_FIND_LINKS=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-$(setting find-links)}}
SSL_CERT_FILE=${SSL_CERT_FILE:-${PIP_CERT:-$(setting cert)}}
# Every hash is pinned, so it does not matter which index a file comes from.
UV_INDEX_STRATEGY=unsafe-best-match
for name in UV_SYSTEM_CERTS UV_DEFAULT_INDEX UV_INDEX UV_FIND_LINKS SSL_CERT_FILE UV_INDEX_STRATEGY; do
    eval "value=\$$name"
    # An empty one is no setting.
    if [ -n "$value" ]; then export "${name?}"; else unset "$name"; fi
done

echo "installing the pinned requirements"
# What is not pinned goes, pip apart: the environment is the same whatever was there before.
if ! "$venv/bin/uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements.txt; then
    echo "uv could not install them; pip tries, which takes some minutes"
    pip install --quiet --require-hashes -r requirements.txt || fail "the requirements could not be installed"
fi
