#!/bin/sh
# Imports 20 rows, and goes on where an earlier run stopped (descriptor lines, docs/programs.md).
row=$(cat <&"$HOLDFAST_CHECKPOINT_FD")
while [ "${row:=0}" -lt 20 ]; do
    row=$((row + 1))
    echo "row $row" >>"${ROWS:-/dev/null}" # the work
    echo "{\"checkpoint\":\"$row\",\"progress\":$((row * 5)),\"note\":\"row $row\"}" >&3
    sleep "${PACE:-0.1}"
done
echo '{"verdict":"done","result":{"rows":20}}' >&3
