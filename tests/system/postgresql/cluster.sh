#!/bin/sh
# Makes a PostgreSQL cluster in a folder, for tests: no TCP, a socket in the folder alone.
#
# usage: cluster.sh start|stop|kill FOLDER [SETTING=VALUE...]     settings for one that is made
#
# PostgreSQL refuses to run as root: then the cluster is nobody's, and the folder too.
set -eu
verb=$1 folder=$2
shift 2
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; else "$@"; fi; }
case $verb in
start)
    if [ ! -d "$folder/data" ]; then
        mkdir -p "$folder"
        chmod 755 "$folder"
        [ "$(id -u)" != 0 ] || chown nobody:nogroup "$folder"
        (cd "$folder" && as "$bin/initdb" -D "$folder/data" -U kldiv -A trust -E UTF8 --locale=C >"/dev/null")
        [ $# = 0 ] || printf '%s\n' "$@" >> "$folder/data/postgresql.conf"
    fi
    cd "$folder"
    as "$bin/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$folder -c max_connections=200" start >/dev/null
    ;;
stop) cd "$folder" && as "$bin/pg_ctl" -D "$folder/data" -m fast -w stop >/dev/null ;;
kill) cd "$folder" && as "$bin/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null ;;
*) exit 2 ;;
esac
