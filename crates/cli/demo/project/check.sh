#!/bin/sh
# Checks src/total.sh; exits 1 if any case fails.
failed=0

expect() {
    got=$(printf "$1" | sh src/total.sh)
    if [ "$got" = "$2" ]; then
        echo "ok    $3"
    else
        echo "FAIL  $3: expected $2, got $got"
        failed=1
    fi
}

expect '2 300\n1 50\n' 650 'two lines'
expect '' 0 'an empty receipt'
expect '2 300\n1 50' 650 'a last line without a line break'
exit $failed
