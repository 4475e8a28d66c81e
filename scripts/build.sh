#!/bin/sh
# Compiles the Rust core into .venv: scripts/build.sh PROFILE, one of Cargo.toml (quick, release).
# Run from the root of the project by the Makefile, after the packages of requirements/run.txt.
set -eu
profile=$1
bin=.venv/bin

say() { echo "bloomtide: $1" >&2; }

scripts/require.sh cc

if ! command -v cargo >/dev/null 2>&1; then
    # pip builds in isolation, where maturin asks for a package that fetches Rust into its own cache.
    say "no cargo here, so pip downloads Rust for this build; it shows nothing for some minutes"
    "$bin/python" -m pip install --quiet --no-deps -C build-args="--locked --profile $profile" --editable . \
        2>.venv/pip.log || {
        say "pip could not build with a Rust of its own: install Rust with rustup and run this again (details: .venv/pip.log)"
        exit 1
    }
    exit
fi

scripts/require.sh cargo
cargo fetch --quiet --locked 2>.venv/cargo.log || {
    say "the Rust crates could not be downloaded: connect to the network once, later builds work without (details: .venv/cargo.log)"
    exit 1
}
case $profile in
release) say "compiling the Rust core for speed, about three minutes on two cores" ;;
*) say "compiling the Rust core, about two minutes on two cores; only the first time, and after a change in crates/" ;;
esac
VIRTUAL_ENV=$PWD/.venv "$bin/maturin" develop --profile "$profile" --locked
