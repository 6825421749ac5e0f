#!/bin/sh
# Installs packages of Debian that are missing: docker/install-packages.sh PACKAGE...
#
# A machine in its first minutes has apt's locks taken. DPkg::Lock::Timeout waits for dpkg's alone, not for those of lists
# and archives: so whatever lock it is, apt is run again, for ten minutes. APT is the command, for tests.
set -eu
command -v dpkg >/dev/null || { echo "no Debian here: what packages of these names have must be there: $*"; exit 0; }
if [ $# -gt 0 ] && dpkg -s "$@" >/dev/null 2>&1; then exit 0; fi
sudo=$([ "$(id -u)" = 0 ] || echo sudo)
apt=${APT:-$sudo env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -qq}

run() {
    echo "apt-get $*"
    left=120
    until said=$($apt "$@" 2>&1 >&3); do
        case $said in *"Could not get lock"*) left=$((left - 1)) ;; *) left=0 ;; esac
        echo "$said"
        [ $left -gt 0 ] || return 1
        sleep 5
    done
    [ -z "$said" ] || echo "$said"
}
{ run update && run install -y --no-install-recommends "$@"; } 3>&1 >&2
