#!/bin/sh
# Says in one line what to install when a tool is missing: scripts/require.sh python cc cargo uv
# Run from the root of the project.
# PYTHON chooses the interpreter that makes the virtual environment.
set -u
python=${PYTHON:-python3}

missing() {
    echo "bloomtide: $1" >&2
    exit 1
}

for tool in "$@"; do
    case $tool in
    python)
        command -v "$python" >/dev/null 2>&1 ||
            missing "\`$python\` not found: install Python 3.11 or newer, or choose one with PYTHON=/path/to/python3"
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
            missing "$("$python" --version 2>&1) is too old: install Python 3.11 or newer, or choose one with PYTHON=/path/to/python3"
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            missing "\`$python\` cannot make virtual environments: install its venv module (Debian, Ubuntu: python3-venv)"
        ;;
    cc)
        # Rust links through it, also when the toolchain is brought by pip.
        command -v cc >/dev/null 2>&1 ||
            missing "no C compiler: install gcc or clang so that \`cc\` is on the PATH (Debian, Ubuntu: build-essential)"
        ;;
    cargo)
        wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
        found=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
        [ -n "$found" ] ||
            missing "no Rust toolchain: install Rust $wanted or newer with rustup (only \`make run\` can do without)"
        [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
            missing "Rust $found is too old: bring Rust $wanted or newer with \`rustup update\`"
        ;;
    uv)
        command -v uv >/dev/null 2>&1 ||
            missing "\`uv\` not found: install it with \`pip install uv\`"
        ;;
    *)
        missing "scripts/require.sh knows no tool \`$tool\`"
        ;;
    esac
done
