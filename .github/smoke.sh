#!/bin/sh
# Installs each wheel of a folder with the interpreter it was built for and uses it: smoke.sh FOLDER
# Run in an image that has the interpreters on its path, such as PyPA's manylinux and musllinux.
set -eu
here=$(dirname "$0")
used=0
for wheel in "$1"/*.whl; do
    # bloomtide-1.2.3-cp314-cp314t-platform.whl: the ABI names the interpreter, python3.14t
    abi=$(basename "$wheel" | cut -d - -f 4)
    python=python3.${abi#cp3}
    "$python" -m venv "/tmp/$abi"
    "/tmp/$abi/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: "$wheel"
    "/tmp/$abi/bin/python" "$here/smoke.py"
    used=$((used + 1))
done
echo "$used wheels work"
test "$used" -gt 0
