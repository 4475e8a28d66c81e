#!/bin/sh
# Installs a wheel of exactly these sources into .venv, so that `make run` need not compile.
# It looks in dist/ (`make wheel`), and on a clean checkout of a release's tag among the published
# wheels. Exit code 1: there is none for this Python and platform, compile.
set -eu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
pip=".venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all:"

# Once the tree was built, `make build` keeps it right.
[ ! -e .venv/.build ] || exit 1

for wheel in dist/bloomtide-"$version"-*.whl; do
    [ -e "$wheel" ] || continue
    [ -z "$(find Cargo.toml Cargo.lock pyproject.toml crates python -name __pycache__ -prune -o -type f -newer "$wheel" ! -name '*.so' -print)" ] || continue
    if $pip --force-reinstall "$wheel" 2>.venv/pip.log; then
        echo "bloomtide: using the wheel $wheel" >&2
        exit 0
    fi
    echo "bloomtide: $wheel is not for this Python or platform" >&2
done

[ "$(git describe --tags --exact-match 2>/dev/null)" = "v$version" ] || exit 1
[ -z "$(git status --porcelain 2>/dev/null)" ] || exit 1
$pip "bloomtide==$version" 2>.venv/pip.log || exit 1
echo "bloomtide: using the published wheel of $version" >&2
