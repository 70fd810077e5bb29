# In a guest with Debian and systemd: the packages are installed, upgraded, stopped, removed and purged, and their units tried.
weights() { cat /sys/fs/cgroup/t/a/io.bfq.weight /sys/fs/cgroup/t/b/io.bfq.weight; }
are_held() { weights | grep -q '^254:0 '; }
are_back() { ! are_held; }
show() { systemctl show -P "$1" minervad; }
cd /packages
# Emulated processors beside other work may be slower than a real machine ever is.
mkdir -p /etc/systemd/system/minervad.service.d
printf '[Service]\nTimeoutStartSec=5min\nTimeoutStopSec=5min\n' > /etc/systemd/system/minervad.service.d/slow.conf

# Two tenants on a disk that obeys weights.
echo bfq > /sys/block/vda/queue/scheduler
echo 0 > /sys/block/vda/queue/iosched/low_latency
echo +io > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/t/a /sys/fs/cgroup/t/b
echo +io > /sys/fs/cgroup/t/cgroup.subtree_control
for name in a b; do
    setsid sh -c 'echo $$ > /sys/fs/cgroup/t/'$name'/cgroup.procs
        while :; do dd if=/dev/vda of=/dev/null bs=256k count=4 iflag=direct; sleep 1; done' > /dev/null 2>&1 &
done

dpkg --install minerva-ctl_*-1_*.deb minervad_*-1_*.deb > /tmp/log 2>&1
say installed "$? $(systemctl is-enabled minervad) $(systemctl is-active minervad) $(show Type)"
say complaints "$(journalctl --boot --no-pager --grep 'minerva[a-z-]*[.](service|socket):[0-9]+:' --output cat)"
say private "$(stat -c '%U %a' /run/minerva /var/lib/minerva | tr '\n' ' ')"

mkdir -p /etc/minerva/minerva.toml.d
printf 'mode = "enforce"\n[daemon]\ninclude = ["t/*"]\ndevices_only = ["vda"]\n' > /etc/minerva/minerva.toml.d/own.toml
systemctl restart minervad
until_so are_held; say steers "$? $(weights)"
echo 'mode = "enfroce"' > /etc/minerva/minerva.toml.d/zz.toml
systemctl reload minervad 2> /dev/null; say bad-reload "$? $(systemctl is-active minervad)"
rm /etc/minerva/minerva.toml.d/zz.toml
systemctl reload minervad; say good-reload "$? $(systemctl is-active minervad)"

# Ended by force, it is started again, and the unit's own restore or the guard has put everything back in between.
before=$(show MainPID)
kill -9 "$before"
until_so sh -c '[ "$(systemctl show -P NRestarts minervad)" = 1 ] && systemctl is-active minervad'
[ "$(show MainPID)" != "$before" ]; say restarted "$? $(show NRestarts)"
until_so are_held; say steers-again "$?"
tells_restored() { journalctl --boot --no-pager --unit minervad --output cat | grep ' restored, '; }
until_so tells_restored; say restored-by-unit "$(tells_restored | wc -l)"

# State: a named tenant's weight, credits, a file that the administrator changed.
setsid minerva-ctl run --name backup --weight 50 -- sleep 3000 > /dev/null 2>&1 &
until_so grep -q backup /run/minerva/named.json; say named "$? $(cat /run/minerva/named.json)"
until_so minerva-ctl credits give t/a 7 --reason test; say given "$?"
echo '# mine' >> /etc/minerva/minerva.toml

dpkg --install minerva-ctl_*-2_*.deb minervad_*-2_*.deb > /tmp/log 2>&1 < /dev/null
say upgraded "$? $(version minervad) $(systemctl is-active minervad)"
until_so are_held; say steers-upgraded "$?"
say kept-file "$(tail -n 1 /etc/minerva/minerva.toml)"
say kept-name "$(cat /run/minerva/named.json)"
say kept-credits "$(minerva-ctl audit 2>&1 | grep -c 'test')"

# A stop puts everything back; what refuses is journalled on, and put back later without a daemon.
systemctl stop minervad; are_back; say stopped "$? $(systemctl show -P Result minervad)"
systemctl start minervad; until_so are_held
# A file that nobody can write in the place of the knob, also for the unit, whose mounts follow the host's.
mkdir /tmp/refusing && mount -t tmpfs tmpfs /tmp/refusing && cat /sys/fs/cgroup/t/a/io.bfq.weight > /tmp/refusing/knob
mount -o remount,ro /tmp/refusing && mount --bind /tmp/refusing/knob /sys/fs/cgroup/t/a/io.bfq.weight
systemctl stop minervad; are_held; say stopped-in-vain "$? $(show Result) $(grep -c held /run/minerva/undo.journal) $(cat /run/minerva/named.json)"
umount /sys/fs/cgroup/t/a/io.bfq.weight
# As a comparison of elevators leaves it that is killed: the daemon puts it back from within its unit.
cp /run/minerva/undo.journal /tmp/journal
minerva-ctl restore > /tmp/log 2>&1; say restored-later "$? $(tail -n 1 /tmp/log)"
are_back; say back "$? $(ls /run/minerva/undo.journal 2>&1)"
mkdir -m 700 /run/minerva/minerva-probe-4194400 && cp /tmp/journal /run/minerva/minerva-probe-4194400/undo.journal
systemctl start minervad; until_so are_held
say probe-left "$(ls -d /run/minerva/minerva-probe-* 2> /dev/null)"

# The agent beside it, which has to be told that this is no host: anybody may ask it.
mkdir -p /etc/systemd/system/minerva-agent.service.d /etc/systemd/system/minerva-agent.socket.d
for unit in service socket; do
    printf '[Unit]\nConditionPathExists=\n' > /etc/systemd/system/minerva-agent.$unit.d/own.conf
done
echo MINERVA_UPSTREAM=unix:/run/minerva/tenant.sock > /etc/minerva/agent.env
dpkg --install minerva-agent_*-1_*.deb > /tmp/log 2>&1
say agent "$? $(systemctl is-active minerva-agent.socket minerva-agent.service | tr '\n' ' ')"
ask() { MINERVA_ADDRESS=unix:/run/minerva/agent.sock setpriv --reuid=65534 --regid=65534 --clear-groups minerva-ctl whoami 2>&1; }
# What the tool waits for may take longer than it is willing to where other guests get the processors.
is_answered() { ask > /tmp/answer; grep -q minerva-agent /tmp/answer; }
answer() { until_so is_answered; cat /tmp/answer; }
say agent-user "$(ps -o user= -p "$(systemctl show -P MainPID minerva-agent)")"
say asked-by-nobody "$(answer)"
systemctl kill --signal KILL minerva-agent; say asked-after-kill "$(answer)"
dpkg --install minerva-agent_*-2_*.deb > /tmp/log 2>&1; say agent-upgraded "$? $(answer)"
dpkg --purge minerva-agent > /tmp/log 2>&1; say agent-purged "$? $(ls /run/minerva/agent.sock /usr/bin/minerva-agent 2>&1)"

# Background work is not bound by what binds the daemon: it deletes below /home, and its commands write.
for name in a b; do kill $(cat /sys/fs/cgroup/t/$name/cgroup.procs); done
mkfs.ext4 -q /dev/vda && mount /dev/vda /home && mkdir -p /home/old/deep && echo text > /home/old/deep/file
systemctl restart minervad
minerva-ctl rm -r /home/old > /tmp/log 2>&1; say deleting "$? $(tail -n 1 /tmp/log)"
is_deleted() { [ -e /home/written ] && [ ! -e /home/old ]; }
minerva-ctl background add --name writer --path /home -- sh -c 'echo "$(id -u) written" > /home/written' > /tmp/log 2>&1
say commanded "$? $(tail -n 1 /tmp/log)"
until_so is_deleted; say deleted "$? $(ls /home | tr "\n" " ")$(cat /home/written)"
is_over() { minerva-ctl background list | grep -q 'writer.*done'; }
until_so is_over; say over "$? $(minerva-ctl background list | tr '\n' ' ')"
# Work that is under way is frozen when the daemon stops; with the package it ends, and its file system is free.
minerva-ctl background add --name endless --path /home -- sh -c 'while :; do date > /home/endless; sleep 0.2; done' > /tmp/log 2>&1
until_so [ -e /home/endless ]; say endless "$?"

dpkg --remove minervad > /tmp/log 2>&1; say removed "$? $(systemctl is-active minervad) $(ls /etc/minerva/minerva.toml /var/lib/minerva/minerva.db | wc -l)"
are_back; say removed-back "$?"
say units "$(systemctl list-units --no-legend --plain 'minerva-background-*' | wc -l)"
is_unmounted() { ! mountpoint --quiet /home || umount /home; }
until_so is_unmounted; say unmounted "$?"
# Where minerva-blk listens.
mkdir -p /run/minerva/servers && touch /run/minerva/servers/blk
# Where the pool of minerva-fs is unless fs.toml says another place, and where the documents have images of virtual machines.
mkdir -p /var/lib/minerva/pool/tenants/web && echo text > /var/lib/minerva/pool/tenants/web/file && echo image > /var/lib/minerva/vm1.raw
mkdir -p /var/lib/minerva/models /var/lib/minerva/background/7 && touch /var/lib/minerva/minerva.db.corrupt-1 /var/lib/minerva/models/sessions.1
cp /var/lib/dpkg/info/minervad.postrm /tmp/postrm
dpkg --purge minervad minerva-ctl > /tmp/log 2>&1; say purged "$? $(ls -d /etc/minerva/minerva.toml* /usr/bin/minerva* 2> /dev/null)"
say state-left "$(cd /var/lib/minerva && find . -type f | sort | tr '\n' ' ')"
# Where nobody else has anything there the directory goes too.
rm -r /var/lib/minerva/pool /var/lib/minerva/vm1.raw && sh /tmp/postrm purge; say state-gone "$? $(ls -d /var/lib/minerva 2> /dev/null)"
say others "$(cd /run/minerva && find . -mindepth 1 | sort | tr '\n' ' ')"
say failed "$(systemctl list-units --failed --no-legend)"
