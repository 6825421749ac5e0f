#!/bin/sh
# Suites: the tests of a file are one suite, named after the file (tls), or after its folder and the file where the
# file's name alone does not tell what is tested (monitors_bins). No two files share a suite.
# Usage: tests/tools/lint/suites.sh FILE...
set -eu
awk '
match($0, /^(Test|TestSuite)\([A-Za-z0-9_]+/) {
    suite = substr($0, RSTART, RLENGTH)
    sub(/.*\(/, "", suite)
    n = split(FILENAME, part, "/")
    name = part[n]
    sub(/\.c$/, "", name)
    long = part[n - 1] "_" name
    if (suite != name && suite != long)
        print FILENAME ": the suite " suite " is not named " name " or " long
    else if (suite in owner && owner[suite] != FILENAME)
        print FILENAME ": " owner[suite] " has a suite " suite ", too"
    else if (FILENAME in suite_of && suite_of[FILENAME] != suite)
        print FILENAME ": two suites, " suite_of[FILENAME] " and " suite
    owner[suite] = FILENAME
    suite_of[FILENAME] = suite
}' "$@" | sort -u | { ! grep . >&2; }
