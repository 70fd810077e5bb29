#!/bin/busybox sh
# The guest's init: a small Linux with the unified cgroup hierarchy, then the script, then the end.
# The script's output leaves through virtio ports, so that the kernel's own messages on the console cannot mix with it.

/bin/busybox mkdir -p /sbin
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin HOME=/root

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup

while read -r module parameters; do
    # Unquoted: each parameter is an argument of its own.
    insmod "$module" $parameters || echo "minerva: $module was not loaded"
done < /minerva/load

for controller in +io +memory +cpu +pids; do
    echo "$controller" > /sys/fs/cgroup/cgroup.subtree_control || echo "minerva: $controller was refused"
done

ip link set lo up
cd /root || exit

sh /minerva/script < /dev/null > /dev/vport0p1 2> /dev/vport0p2
echo "$?" > /dev/vport0p3
sync
poweroff -f
