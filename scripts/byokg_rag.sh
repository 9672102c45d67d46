#!/usr/bin/env bash
# The tables of ByoKG-RAG (arXiv:2507.04127v1): every experiment over one data set, then a report.
#
#   scripts/byokg_rag.sh OUT dataset=cwq dataset.root=DIR graph=arcadedb graph.path=DIR llm=bedrock llm.model=ID
#
# All further words are settings of byokg eval. What was answered before is not asked again, so the script can be
# stopped and started. Add budget=usd budget.max_usd=50 to limit what a job spends, and workers=16 to go faster.
set -uo pipefail # a table that fails does not stop the others
out=$1
shift
byokg eval -m experiment=table1 out="$out/table1" "$@"
byokg eval -m experiment=table2 out="$out/table2" "$@"
byokg eval -m experiment=table3 out="$out/table3" "$@"
byokg eval -m experiment=table4 out="$out/table4" "$@"
byokg eval -m experiment=table7 out="$out/table7" "$@"
byokg eval -m experiment=table8 out="$out/table8" "$@"
byokg eval -m experiment=rounds3 out="$out/rounds3" "$@"
byokg report "$out"/table1/*/ --out "$out/table1.html"
