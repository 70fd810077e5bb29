# In a guest with Debian and systemd: each kind of background work under the packaged unit, whose sandbox must not reach the work.
cd /packages
mkdir -p /etc/systemd/system/minervad.service.d
# Emulated processors beside other work may be slower than a real machine ever is.
printf '[Service]\nTimeoutStartSec=5min\nTimeoutStopSec=5min\n' > /etc/systemd/system/minervad.service.d/slow.conf
dpkg --install minerva-ctl_*.deb minervad_*.deb > /tmp/log 2>&1
say installed "$? $(systemctl is-active minervad)"

add() { minerva-ctl background add "$@" > /tmp/log 2>&1 || cat /tmp/log; }
is_in() { minerva-ctl --json background list | grep "\"name\":\"$1\"" | grep -q "\"state\":\"\($2\)\""; }
# How a piece of work ended, and what is said of it.
ended() { until_so is_in "$1" 'done\|failed'; minerva-ctl background explain "$1" | grep -E '^ *(state|message)' | tr -s ' '; }

# A mirror, whose pace is set by files of sysfs.
echo md0 > /sys/module/md_mod/parameters/new_array
md=/sys/block/md0/md
echo none > $md/metadata_version
echo raid1 > $md/level
echo 2 > $md/raid_disks
echo 16384 > $md/component_size
for disk in a b; do
    cat /sys/block/vd$disk/dev > $md/new_dev
    echo 16384 > $md/dev-vd$disk/size
done
echo 0 > $md/dev-vda/slot
echo 1 > $md/dev-vdb/slot
echo active > $md/array_state
until_so grep -q idle $md/sync_action
is_known() { minerva-ctl --json status | grep -q '"md0"'; }
until_so is_known
add --name compare --kind md-check --path /dev/md0 --sla 1d
say md-check "$(ended compare)"
say md-speeds "$(cat $md/sync_speed_max) $(cat $md/sync_speed_min)"

# ext4, of which free space is discarded.
mkfs.ext4 -q /dev/vdc && mkdir /srv/plain && mount /dev/vdc /srv/plain
discarded() { awk '{ print $14 }' /sys/block/vdc/stat; }
before=$(discarded)
add --name trim --kind fstrim --path /srv/plain --sla 1d
say fstrim "$(ended trim)"
say fstrim-sectors $(($(discarded) - before))

# btrfs, by all of its kinds.
mkfs.btrfs -q /dev/vdd > /tmp/log 2>&1 && mkdir /srv/tree && mount /dev/vdd /srv/tree
btrfs -q subvolume create /srv/tree/live
for i in $(seq 40); do dd if=/dev/urandom of=/srv/tree/live/file-$i bs=64k count=8 status=none; done
sync
btrfs -q subvolume snapshot -r /srv/tree/live /srv/tree/old
rm /srv/tree/live/file-1 /srv/tree/live/file-2
add --name check --kind btrfs-scrub --path /srv/tree --sla 1d
say btrfs-scrub "$(ended check)"
add --name forget --kind btrfs-snapshot-delete --path /srv/tree/old --sla 1d
say btrfs-snapshot-delete "$(ended forget)"
say live "$(ls /srv/tree) $(ls /srv/tree/live | wc -l)"
add --name gather --kind btrfs-defragment --path /srv/tree/live --sla 1d
say btrfs-defragment "$(ended gather)"
add --name move --kind btrfs-balance --path /srv/tree --used-percent-max 90 --sla 1d
say btrfs-balance "$(ended move)"

# A command that is under way when the daemon is stopped is frozen, goes on with the next, and keeps what it had done.
command='for i in $(seq 400); do echo $i >> /srv/plain/count; dd if=/dev/zero of=/srv/plain/data bs=4k count=1 oflag=direct 2> /dev/null; sleep 0.2; done'
add --name steps --path /srv/plain -- sh -c "$command"
counted() { [ "$(wc -l < /srv/plain/count)" -gt "$1" ]; }
units() { systemctl list-units --no-legend --plain 'minerva-background-*' | wc -l; }
until_so counted 3; say begun "$? $(units)"
systemctl stop minervad; say stopped "$? $(systemctl show -P Result minervad)"
at_rest=$(wc -l < /srv/plain/count); sleep 3
counted "$at_rest"; say frozen "$? $(units)"
systemctl start minervad
until_so counted "$at_rest"; say goes-on "$? $(units)"
# A crash is no end of it either: it rests until there is a daemon again.
printf '[Service]\nRestart=no\n' > /etc/systemd/system/minervad.service.d/restart.conf
systemctl daemon-reload
systemctl kill --kill-who=main --signal KILL minervad
is_down() { [ "$(systemctl is-active minervad)" = failed ]; }
until_so is_down; at_rest=$(wc -l < /srv/plain/count); sleep 3
counted "$at_rest"; say frozen-by-crash "$? $(units)"
systemctl reset-failed minervad; systemctl start minervad
until_so counted $((at_rest + 2)); say after-crash "$? $(sort -n /srv/plain/count | uniq -d | wc -l)"

# A host that goes down: systemd ends what is frozen, and does not wait for long.
systemctl stop minervad
began=$(uptime_s)
systemctl stop 'minerva-background-*.service'
say down "$? $(units) $([ $(($(uptime_s) - began)) -lt 60 ] && echo soon) $(pgrep -c -f '[s]eq 400')"
systemctl start minervad
minerva-ctl background remove steps > /tmp/log 2>&1; say removed "$?"
no_units() { [ "$(units)" = 0 ]; }
until_so no_units; say over "$?"
umount /srv/plain; say unmounted "$?"
say complaints "$(journalctl --boot --no-pager --unit minervad --output cat | grep -iE 'denied|not permitted|read-only' | sort -u)"
say failed "$(systemctl list-units --failed --no-legend)"
