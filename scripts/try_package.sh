#!/usr/bin/env bash
# Install a wheel or an sdist with the locked versions into an environment of its own, and ask it a question there.
#   scripts/try_package.sh PYTHON FILE
set -euo pipefail
python=$1
file=$(realpath "$2")
lock=$(realpath "$(dirname "$0")/../constraints.txt")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$python" -m venv venv
venv/bin/python -m pip --disable-pip-version-check install --quiet -c "$lock" "$file"
export XDG_CACHE_HOME=$folder/cache
venv/bin/byokg --help > help.txt
grep -q 'Answer one question' help.txt
venv/bin/byokg ask 'What is the capital of Peru?' dataset=atlas > answer.txt
grep -q '^Lima  city/lima' answer.txt
venv/bin/byokg eval dataset=atlas debug=quick out=run > table.txt 2> progress.txt
[ "$(wc -l < run/predictions.jsonl)" = 3 ]
echo "$(basename "$file") works in an environment of its own"
