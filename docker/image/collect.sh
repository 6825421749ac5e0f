#!/bin/sh
# Collects the image's files into a folder: the program, the libraries that it loads, the loader, time zones, the
# names of users, the notices of licences, and what scanners read. FOLDER.packages names Debian's packages of all that.
# Runs in Debian.
#
# Usage: docker/image/collect.sh PROGRAM TRIPLET FOLDER, with x86_64-linux-gnu or aarch64-linux-gnu.
# The owner of the store's folder is given by the Dockerfile.
set -eu
program=$1 triplet=$2 root=$3
shift 3
libraries=$root/usr/lib/$triplet documents=$root/usr/share/doc/kldiv
umask 022
mkdir -p "$libraries" "$root/usr/bin" "$root/etc" "$root/var/lib/kldiv" "$documents"

# Notes the package of a file, which dpkg may know with or without /usr.
add_package() {
    owner=$(dpkg-query -S "$1" 2> /dev/null || dpkg-query -S "/usr$1")
    echo "${owner%%: *}" >> "$root.packages"
}

# A library goes by the name that the loader looks for. By reading what is needed, files for another
# machine can be collected, too.
add_needed() {
    for name in $("$triplet-readelf" -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
        [ -e "$libraries/$name" ] && continue
        for folder in "/lib/$triplet" "/usr/lib/$triplet"; do
            [ -e "$folder/$name" ] && break
        done
        install -m 755 "$folder/$name" "$libraries/$name"
        add_package "$folder/$name"
        add_needed "$libraries/$name"
    done
}
: > "$root.packages"
install -m 755 "$program" "$root/usr/bin/kldivd"
add_needed "$root/usr/bin/kldivd"

# The loader's path is in the program: /lib64/ld-linux-x86-64.so.2, /lib/ld-linux-aarch64.so.1.
loader=$("$triplet-readelf" -l "$program" | sed -n 's/.*interpreter: \(.*\)\]$/\1/p')
[ -n "$loader" ] || { echo "${0##*/}: $program has no loader" >&2; exit 1; }
ln -s usr/lib "$root/lib"
[ "${loader%/*}" = /lib ] || { ln -s "usr${loader%/*}" "$root${loader%/*}"; mkdir -p "$root/usr${loader%/*}"; }
ln -rs "$libraries/${loader##*/}" "$root/usr$loader"

# The names that people use begin with a capital.
mkdir -p "$root/usr/share/zoneinfo"
cp -dR /usr/share/zoneinfo/[A-Z]* "$root/usr/share/zoneinfo"
add_package /usr/share/zoneinfo

echo 'root:x:0:0:root:/:/sbin/nologin
kldiv:x:10001:10001:kldiv:/:/sbin/nologin' > "$root/etc/passwd"
echo 'root:x:0:
kldiv:x:10001:' > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"

# Where no package manager is, Trivy and Grype read a paragraph of each package, as in the images of distroless, and
# which Debian it is. libmicrohttpd is a part of the program.
cp /etc/debian_version /etc/os-release "$root/etc"
sort -u -o "$root.packages" "$root.packages"
static=$(dpkg-query -S "/usr/lib/$triplet/libmicrohttpd.a")
mkdir -p "$root/var/lib/dpkg/status.d"
for package in $(cat "$root.packages") "${static%%: *}"; do
    name=${package%:*}
    dpkg-query -s "$package" > "$root/var/lib/dpkg/status.d/$name"
    set -- "$@" "/usr/share/doc/$name/copyright"
done
for notice in LICENSE api/web/node_modules/uplot/LICENSE api/web/node_modules/swagger-ui-dist/LICENSE "$@"; do
    printf '==== %s\n\n' "$notice"
    cat "$notice"
    echo
done > "$documents/copyright"
gzip -9n "$documents/copyright"
find "$root" -exec touch -hd "@${SOURCE_DATE_EPOCH:-$(date +%s)}" {} +
