#!/bin/busybox sh
# The guest's first init: finds the disk with Debian on it, puts what the host gave over it, and hands over to systemd.

/bin/busybox mkdir -p /sbin /debian
/bin/busybox --install -s /bin
export PATH=/bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev

while read -r module parameters; do
    # Unquoted: each parameter is an argument of its own.
    insmod "$module" $parameters || echo "minerva: $module was not loaded"
done < /minerva/load

for disk in /sys/block/vd*; do
    [ "$(cat "$disk/serial")" = debian ] && root=/dev/${disk##*/}
done
if ! mount -t ext4 "$root" /debian; then
    echo "minerva: there is no disk with Debian"
    poweroff -f
fi

# File by file, as directories of the one may be links in the other.
put() {
    mkdir -p "/debian/${1%/*}"
    cp -p "$1" "/debian/$1"
}
cd /minerva/over && find . -type f | while read -r file; do put "$file"; done
# Debian's own libraries win: all that is there was built for them.
mkdir -p /minerva/libraries
cd /minerva/libraries && find . -type f | while read -r file; do [ -e "/debian/$file" ] || put "$file"; done
cd /

umount /proc /sys
mount -o move /dev /debian/dev
exec switch_root /debian /lib/systemd/systemd
