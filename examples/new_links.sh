#!/bin/sh
# The links that no night before had, each once, whatever their spelling; remembers across nights.
#
#   sh examples/new_links.sh seen.bloom links-*.txt.gz > new-links.txt
set -eu
state=$1
shift
exec bloomtide dedup --url --state "$state" --stats "$@"
