#!/bin/sh
# Makes .venv: the newest of Python 3.13, 3.12 and 3.11, the tools, and the collection itself, which Ansible finds
# because a link in the environment's own ansible_collections points at this tree.
set -eu
cd "$(dirname "$0")/.."

fail() { printf 'setup: %s\n' "$1" >&2; exit 1; }

find_python() {
    for version in 3.13 3.12 3.11; do
        # Version managers put a stand-in on PATH that may refuse, so try it; their real ones lie in folders of their own.
        for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/"python$version"; do
            if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
                command -v "$python"
                return
            fi
        done
    done
}

install_debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "$1 is needed; install it (on Debian: apt-get install $2)"
    printf 'setup: installing %s\n' "$2"
    apt-get update -qq
    # shellcheck disable=SC2086 # several packages
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $2 >/dev/null
}

python=${PYTHON:-$(find_python)}
if [ -z "$python" ]; then
    install_debian "Python 3.11 or newer" "python3 python3-venv"
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is needed, and this system has none to install"
fi
"$python" -c 'import ensurepip' 2>/dev/null || install_debian "the venv module of $python" "python3-venv"
command -v git >/dev/null || install_debian git git
command -v ssh >/dev/null || install_debian "the OpenSSH client" openssh-client

if ! .venv/bin/python -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)' 2>/dev/null ||
    [ "$(.venv/bin/python -c 'import sys; print(sys.version_info[:2])')" != "$("$python" -c 'import sys; print(sys.version_info[:2])')" ] ||
    [ "$(sed -n 's/^tree = //p' .venv/tree.txt 2>/dev/null)" != "$PWD" ]; then
    rm -rf .venv
    printf 'setup: making .venv with %s\n' "$("$python" --version)"
    "$python" -m venv .venv
    printf 'tree = %s\n' "$PWD" >.venv/tree.txt
fi
printf 'setup: installing the tools\n'
.venv/bin/pip install --quiet --disable-pip-version-check --upgrade pip
.venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$packages/ansible_collections/edpm"
ln -sfn "$PWD" "$packages/ansible_collections/edpm/services"
printf 'setup: %s, ready in .venv\n' "$(.venv/bin/python -c 'from ansible.release import __version__; print("ansible-core", __version__)')"
