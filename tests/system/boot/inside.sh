#!/bin/sh
# Makes the namespaces that it is started in fit for a systemd of their own, and becomes that. Nothing is written outside
# of them: folders that systemd and the service write, and those that have other services, are empty ones in memory.
# Usage: inside.sh FOLDER, which has units/ and kldivd
set -eu
mount --make-rprivate /
for folder in /run /opt /var/lib /etc/systemd/system /etc/init.d /etc/rc?.d /lib/systemd/system-generators; do
    [ ! -d "$folder" ] || mount -t tmpfs tmpfs "$folder"
done
cp "$1/kldivd" /opt/kldivd
mount -t tmpfs tmpfs /lib/systemd/system
cp -r "$1"/units/. /lib/systemd/system
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
[ "${2:-}" != try ] || exit 0
export container=test
exec /lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=0
