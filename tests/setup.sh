#!/bin/sh
# Makes an environment: Python, the tools, and the collection itself, which Ansible finds because a link in the
# environment's own ansible_collections points at this tree.
#   setup.sh         .venv, with the system's own Python where it is 3.11 or newer: distributions build theirs to be
#                    quick, version managers seldom do, and the tests start Ansible some hundred times
#   setup.sh newest  .venv/newest, with the newest Python of this host, and so with the newest ansible-core; where .venv
#                    has that already, it is .venv under another name
# PYTHON=path names the one for .venv.
set -eu
cd "$(dirname "$0")/.."
SYSTEM=/usr/bin/python3

fail() { printf 'setup: %s\n' "$1" >&2; exit 1; }

find_newest() {
    for version in 3.13 3.12 3.11; do
        # Version managers put a stand-in on PATH that may refuse, so try it; their real ones lie in folders of their own.
        for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/"python$version"; do
            if new_enough "$python"; then
                command -v "$python"
                return
            fi
        done
    done
}

find_python() { if new_enough "$SYSTEM" && has_venv "$SYSTEM"; then echo "$SYSTEM"; else find_newest; fi; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
has_venv() { "$1" -c 'import ensurepip' 2>/dev/null; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
version_of() { "$1" -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null; }

install_debian() {
    may_install || fail "$1 is needed; install it (on Debian: apt-get install $2)"
    printf 'setup: installing %s\n' "$2"
    apt-get update -qq
    # shellcheck disable=SC2086 # several packages
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $2 >/dev/null
}

# uv reads no settings of pip's, so it is given those that matter.
install_quickly() {
    "$folder/bin/pip" install --quiet --disable-pip-version-check 'uv>=0.9' || return
    index=${PIP_INDEX_URL:-$("$folder/bin/pip" config get global.index-url 2>/dev/null || true)}
    env UV_NATIVE_TLS=1 ${index:+UV_DEFAULT_INDEX="$index"} ${PIP_FIND_LINKS:+UV_FIND_LINKS="$PIP_FIND_LINKS"} \
        "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" "$@" -r tests/requirements.txt
}

# make_environment FOLDER PYTHON [WORDS FOR uv...]
make_environment() {
    folder=$1 base=$2
    shift 2
    if ! "$folder/bin/python" -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)' 2>/dev/null ||
        [ "$(version_of "$folder/bin/python")" != "$(version_of "$base")" ] ||
        [ "$(sed -n 's/^tree = //p' "$folder/tree.txt" 2>/dev/null)" != "$PWD" ]; then
        rm -rf "$folder"
        printf 'setup: making %s with %s\n' "$folder" "$("$base" --version)"
        "$base" -m venv "$folder"
        printf 'tree = %s\n' "$PWD" >"$folder/tree.txt"
    fi
    printf 'setup: installing the tools\n'
    "$folder/bin/pip" install --quiet --disable-pip-version-check --upgrade pip
    # pip needs a minute for what uv does in seconds, but it knows every way in which a host is told of its index.
    install_quickly "$@" || {
        printf 'setup: uv cannot install them here, so pip does, which takes longer\n'
        "$folder/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
    }
    packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$packages/ansible_collections/edpm"
    ln -sfn "$PWD" "$packages/ansible_collections/edpm/services"
    printf 'setup: %s, ready in %s\n' "$("$folder/bin/python" -c 'from ansible.release import __version__; print("ansible-core", __version__)')" "$folder"
}

if [ "${1:-}" = newest ]; then
    newest=$(find_newest)
    if [ -z "$newest" ] || [ "$(version_of "$newest")" = "$(version_of .venv/bin/python)" ]; then
        [ -h .venv/newest ] || rm -rf .venv/newest
        ln -sfn . .venv/newest
        printf 'setup: .venv has the newest Python of this host\n'
    else
        [ ! -h .venv/newest ] || rm .venv/newest
        # Tests alone run there, and they keep the bytecode of what they import.
        make_environment .venv/newest "$newest"
    fi
    exit
fi

if [ -z "${PYTHON:-}" ] && new_enough "$SYSTEM" && ! has_venv "$SYSTEM" && may_install; then
    (install_debian "the venv module of $SYSTEM" python3-venv) || printf 'setup: so another Python is taken\n'
fi
python=${PYTHON:-$(find_python)}
if [ -z "$python" ]; then
    install_debian "Python 3.11 or newer" "python3 python3-venv"
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is needed, and this system has none to install"
fi
has_venv "$python" || install_debian "the venv module of $python" "python3-venv"
command -v git >/dev/null || install_debian git git
command -v ssh >/dev/null || install_debian "the OpenSSH client" openssh-client
make_environment .venv "$python" --compile-bytecode
