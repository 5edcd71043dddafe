#!/bin/sh
# A handler: one process for each job. The payload is standard input, the job is in HOLDFAST_*;
# what is printed goes to the worker's log. Exit 0: done. 65: dead. Anything else: try again.
set -eu
address=$(cat)
case $address in
*@*) ;;
*)
    echo "no address: $address" >&2 # the last lines on standard error say why
    exit 65
    ;;
esac
# The same job may run again, after a crash or a lost answer: its id makes that harmless.
outbox=${OUTBOX:-${TMPDIR:-/tmp}}
echo "To: $address" >"$outbox/$HOLDFAST_JOB_ID.mail"
echo "mail to $address, attempt $HOLDFAST_ATTEMPT"
