# In a guest with Debian and systemd: the package of the server for VM disks is installed, its unit started, reloaded, killed, upgraded,
# removed and purged.
show() { systemctl show -P "$1" minerva-blk; }
serves() { minerva-ctl disk list | grep -q '^vm1 '; }
is_another() { [ "$(show MainPID)" != "$before" ] && [ "$(show MainPID)" != 0 ] && systemctl is-active --quiet minerva-blk && serves; }
cd /packages
# One that never says that it is ready must not use up the time of the test.
systemctl() { timeout 300 /usr/bin/systemctl "$@"; }

dpkg --install minerva-ctl_*-1_*.deb minerva-blk_*-1_*.deb > /tmp/log 2>&1
say installed "$? $(systemctl is-enabled minerva-blk) $(systemctl is-active minerva-blk)"
mkdir -p /etc/minerva /var/lib/minerva
truncate -s 64M /var/lib/minerva/vm1.raw
chmod 600 /var/lib/minerva/vm1.raw
printf '[server]\nuser = "minerva-blk"\n[disks.vm1]\nimage = "/var/lib/minerva/vm1.raw"\ndirect = false\n' > /etc/minerva/blk.toml
systemctl start minerva-blk; say started "$? $(systemctl is-active minerva-blk) $(show Type)"
until_so serves; say serves "$?"
[ "$(/usr/bin/systemctl is-active minerva-blk)" = active ] || { systemctl status --no-pager minerva-blk; journalctl --boot --no-pager --unit minerva-blk; exit 1; }
say complaints "$(journalctl --boot --no-pager --grep 'minerva-blk[.]service:[0-9]+:' --output cat)"
# The unit's filters of system calls let it ask for short time slices.
say slices "$(journalctl --boot --no-pager --unit minerva-blk --output cat | grep -c 'slices of the usual length')"
say user "$(ps -o user:32= -p "$(show MainPID)")"
say socket "$(stat -c '%U %a' /run/minerva-blk/vm1.sock)"

# Another server goes on without an end of the unit, with the image and the socket of the one before.
before=$(show MainPID)
systemctl reload minerva-blk; say reloaded "$?"
until_so is_another; say took-over "$? $(show NRestarts) $(journalctl --boot --no-pager --unit minerva-blk --output cat | grep -c 'took over from process')"
before=$(show MainPID)
echo 'nonsense = 1' >> /etc/minerva/blk.toml
systemctl reload minerva-blk 2> /dev/null; say bad-reload "$? $(systemctl is-active minerva-blk) $([ "$(show MainPID)" = "$before" ] && serves && echo serves)"
sed -i '/nonsense/d' /etc/minerva/blk.toml

before=$(show MainPID)
kill -9 "$before"
until_so is_another; say restarted "$? $(show NRestarts)"

# One that cannot start, as while the file system of its images is not mounted, is tried until it can: more often than systemd tries by
# itself.
systemctl stop minerva-blk
mv /var/lib/minerva/vm1.raw /var/lib/minerva/absent.raw
systemctl start minerva-blk 2> /dev/null
is_tried_on() { [ "$(show NRestarts)" -ge 6 ]; }
until_so is_tried_on; say tried-on "$? $(show StartLimitIntervalUSec)"
mv /var/lib/minerva/absent.raw /var/lib/minerva/vm1.raw
until_so serves; say serves-late "$? $(systemctl is-active minerva-blk)"
systemctl stop minerva-blk; systemctl start minerva-blk; until_so serves

before=$(show MainPID)
dpkg --install minerva-blk_*-2_*.deb > /tmp/log 2>&1
say upgraded "$? $(version minerva-blk)"
until_so is_another; say upgraded-serves "$? $(show NRestarts)"

systemctl stop minerva-blk; say stopped "$? $(systemctl is-active minerva-blk)"
systemctl start minerva-blk; until_so serves; say again "$?"
dpkg --purge minerva-blk > /tmp/log 2>&1; say purged "$? $(systemctl is-active minerva-blk) $(ls /usr/bin/minerva-blk /etc/minerva/blk.toml 2> /dev/null)"
say failed "$(systemctl list-units --failed --no-legend)"
