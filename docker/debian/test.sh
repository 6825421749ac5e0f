#!/bin/sh
# Installs the packages of a folder in a clean chroot, uses them, and removes them without a trace. The unit is verified,
# not started: a chroot has no systemd that runs.
#
#   sudo docker/debian/test.sh build/deb
set -eu
folder=$(mktemp -d)
root=$folder/root
trap 'rm -rf "$folder"' EXIT
mmdebstrap --quiet --variant=apt --include=systemd,gcc,libc6-dev,pkg-config,curl bookworm "$root"
mkdir "$root/debs"
cp "$1"/*.deb "$root/debs"
inside() { chroot "$root" sh -euc "$1"; }
inside 'find / -xdev -type f -not -path "/proc/*" -not -path "/var/*" | sort' > "$folder/before"
inside 'apt-get -qq update
        apt-get -qq install -y --no-install-recommends /debs/kldivd_*.deb \
            /debs/libkldiv1_*.deb /debs/libkldiv-dev_*.deb > /dev/null
        systemd-analyze verify --man=no kldivd.service kldivd.socket
        systemctl is-enabled kldivd.socket
        dpkg-query --show --showformat="\${Conffiles}" kldivd | grep -q "^ /etc/kldiv/kldivd.env "
        zcat -f /usr/share/doc/kldivd/README.md* | grep -q "^# Operator"
        grep -q "alert: KldivDown" /usr/share/doc/kldivd/examples/rules.yml
        kldivd --version
        printf "%s\n" "#include <kldiv.h>" "#include <stdio.h>" "int main(void) { puts(kl_simd_name()); }" > /tmp/a.c
        gcc /tmp/a.c $(pkg-config --cflags --libs kldiv) -o /tmp/a && /tmp/a
        kldivd --listen 127.0.0.1:18099 --drop-privileges off > /tmp/log 2>&1 & pid=$!
        for i in 1 2 3 4 5 6 7 8 9; do curl -sf http://127.0.0.1:18099/readyz > /dev/null && break; sleep 0.3; done
        curl -sf http://127.0.0.1:18099/kl_div -d "{\"input\":[-1,-2],\"target\":[0.5,0.5],\"reduction\":\"sum\"}" \
            || { cat /tmp/log; exit 1; }
        kill $pid; wait $pid
        apt-get -qq purge -y kldivd libkldiv1 libkldiv-dev > /dev/null
        apt-get -qq autoremove -y > /dev/null; rm -rf /tmp/*
        ! test -e /etc/kldiv'
inside 'find / -xdev -type f -not -path "/proc/*" -not -path "/var/*" | sort' > "$folder/after"
left=$(comm -13 "$folder/before" "$folder/after" | grep -i kldiv) && { echo "left behind: $left"; exit 1; }
echo "installed, used and removed"
