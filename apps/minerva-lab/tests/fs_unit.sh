# In a guest with Debian and systemd: the package of the cache is installed, its unit started, reloaded, killed, upgraded, stopped and
# purged.
show() { systemctl show -P "$1" minerva-fs; }
mounts() { grep -c " /minerva/$1/" /proc/self/mountinfo; }
serves() { [ "$(cat /minerva/web/stable/file)" = text ]; }
is_another() { [ "$(show MainPID)" != "$before" ] && [ "$(show MainPID)" != 0 ] && systemctl is-active --quiet minerva-fs && serves; }
waits_for_use() { minerva-fs status | grep -q 'other.*stable is used'; }
is_away() { [ "$(mounts other)" = 0 ]; }
cd /packages
# One that never says that it is ready must not use up the time of the test.
systemctl() { timeout 300 /usr/bin/systemctl "$@"; }

dpkg --install minerva-ctl_*-1_*.deb minerva-fs_*-1_*.deb > /tmp/log 2>&1
say installed "$? $(systemctl is-enabled minerva-fs) $(systemctl is-active minerva-fs)"
mkdir -p /etc/minerva
printf '[server]\nmetrics = "unix:/run/minerva-fs/metrics.sock"\n[tenants.web]\ntemporary = "8MiB"\nstable = "32MiB"\n' > /etc/minerva/fs.toml
cp /etc/minerva/fs.toml /tmp/one.toml
systemctl start minerva-fs; say started "$? $(systemctl is-active minerva-fs) $(show Type)"
[ "$(/usr/bin/systemctl is-active minerva-fs)" = active ] || { systemctl status --no-pager minerva-fs; journalctl --boot --no-pager --unit minerva-fs; exit 1; }
echo text > /minerva/web/stable/file; echo memory > /minerva/web/temporary/file
until_so serves; say serves "$? $(cat /minerva/web/stable/file)"
say complaints "$(journalctl --boot --no-pager --grep 'minerva-fs[.]service:[0-9]+:' --output cat)"
minerva-fs doctor > /tmp/doctor 2>&1; say doctor "$? $(cat /tmp/doctor)"

# Tenants come, and a mistake changes nothing.
echo '[tenants.other]' >> /etc/minerva/fs.toml
systemctl reload minerva-fs; say reloaded "$? $(mounts other)"
echo 'nonsense = 1' >> /etc/minerva/fs.toml
systemctl reload minerva-fs 2> /dev/null; say bad-reload "$? $(systemctl is-active minerva-fs) $(mounts other)"
sed -i '/nonsense/d' /etc/minerva/fs.toml
perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new("/run/minerva-fs/metrics.sock"); print $s "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"; print <$s>' > /tmp/metrics 2>&1
say scraped "$(grep -c '^minerva_cache_served{tenant="other",pool="stable"} 1' /tmp/metrics)"
echo deferred > /tmp/from
minerva-ctl cache put /root/out --from /tmp/from --tenant web > /dev/null && minerva-ctl cache flush > /tmp/flush 2>&1
say deferred "$? $([ ! -L /root/out ] && cat /root/out)"

# One that is in use goes when it is used no more.
exec 5> /minerva/other/stable/open
cp /tmp/one.toml /etc/minerva/fs.toml
systemctl reload minerva-fs; status=$?
until_so waits_for_use; say leaves "$status $(grep -c ' /minerva/other/stable\| /minerva/other/temporary' /proc/self/mountinfo) $(minerva-fs status | grep -o 'is used')"
exec 5>&-
until_so is_away; say left "$? $(mounts other)"

before=$(show MainPID)
kill -9 "$before"
until_so is_another; say restarted "$? $(show NRestarts)"
say serves-again "$? $(cat /minerva/web/stable/file /minerva/web/temporary/file | tr '\n' ' ')"

# One that cannot start, as while its disk is not mounted, is tried until it can: more often than systemd tries by itself.
systemctl stop minerva-fs
echo 'nonsense = 1' >> /etc/minerva/fs.toml
systemctl start minerva-fs 2> /dev/null
is_tried_on() { [ "$(show NRestarts)" -ge 6 ]; }
until_so is_tried_on; say tried-on "$? $(show StartLimitIntervalUSec)"
sed -i '/nonsense/d' /etc/minerva/fs.toml
until_so serves; say serves-late "$? $(systemctl is-active minerva-fs)"

before=$(show MainPID)
dpkg --install minerva-fs_*-2_*.deb > /tmp/log 2>&1
say upgraded "$? $(version minerva-fs) $([ "$(show MainPID)" = "$before" ] && serves && echo same)"

systemctl stop minerva-fs; say stopped "$? $(systemctl is-active minerva-fs) $(show Result) $(mounts web)"
systemctl start minerva-fs; until_so serves; say again "$? $(cat /minerva/web/stable/file /minerva/web/temporary/file | tr '\n' ' ')"
# What serves the trees of a machine goes with the package.
mkdir -p /etc/systemd/system/minerva-virtiofs@vm1.service.d
printf '[Service]\nExecStart=\nExecStart=/bin/sleep infinity\n' > /etc/systemd/system/minerva-virtiofs@vm1.service.d/own.conf
systemctl daemon-reload
systemctl enable --now minerva-virtiofs@vm1 2> /dev/null; say machine "$? $(systemctl is-active minerva-virtiofs@vm1) $(systemctl show -P StartLimitIntervalUSec minerva-virtiofs@vm1)"
dpkg --remove minerva-fs > /tmp/log 2>&1; say machine-stopped "$? $(systemctl is-active minerva-virtiofs@vm1)"
dpkg --purge minerva-fs > /tmp/log 2>&1
say machine-left "$? $(cd /etc/systemd/system && ls -d ./*.wants/minerva-virtiofs* 2> /dev/null)"
say purged "$? $(systemctl is-active minerva-fs) $(ls /usr/bin/minerva-fs /etc/minerva/fs.toml /var/lib/minerva/pool/tenants/web/file 2> /dev/null | tr '\n' ' ')"
say failed "$(systemctl list-units --failed --no-legend)"
