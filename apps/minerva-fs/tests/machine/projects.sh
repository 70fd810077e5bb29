# The kernel counts a tenant's files by project, on ext4 in a guest whose kernel has project quotas. Each line is a name and an answer.
mkdir -p /disk /etc/minerva
mkfs.ext4 -q -F -O project,quota -E quotatype=prjquota /dev/vda > /tmp/mkfs 2>&1 || cat /tmp/mkfs >&2
mount -t ext4 -o prjquota /dev/vda /disk
echo "mounted: $?"
web='[tenants.web]\nstable = "48MiB"\n'
settings() {
    printf '[pools.stable]\npath = "/disk/pool"\nreserve = "1MiB"\nsecond_account = "%s"\n%b\n' "$1" "$2" > /etc/minerva/fs.toml
}
serve() {
    minerva-fs 2>> /tmp/service &
    service=$!
    until minerva-ctl cache status > /dev/null 2>&1 || ! kill -0 $service 2> /dev/null; do sleep 0.2; done
}
end() {
    kill $service
    wait $service
}
counted() { minerva-fs status --json | sed 's/.*"stable":{//' | grep -o '"second_account":"[^"]*"' | head -1; }
differs() { minerva-fs status | grep -c 'web/stable by'; }

# Files from before the setting get their project too; of a stranger's project nothing is taken.
settings none "$web[tenants.strange]"
serve
mkdir /minerva/web/stable/dir
dd if=/dev/zero of=/minerva/web/stable/dir/old bs=1M count=5 2> /dev/null
end
echo "before: $(lsattr -pd /disk/pool/tenants/web | awk '{print $1}')"
chattr -p 4242 +P /disk/pool/tenants/strange
settings kernel "$web[tenants.strange]"
serve
echo "project: $(lsattr -p /disk/pool/tenants/web/dir | awk '{print $1}') $(counted)"
echo "stranger: $(lsattr -pd /disk/pool/tenants/strange | awk '{print $1}') $(grep -c 'has project 4242, which is not ours; take it away' /tmp/service)"
for n in 1 2 3 4 5 6 7 8; do
    mkdir /minerva/web/stable/dir/$n
    dd if=/dev/zero of=/minerva/web/stable/dir/$n/file bs=1M count=1 2> /dev/null
    ln -s file /minerva/web/stable/dir/$n/link
done
mv /minerva/web/stable/dir/1/link /minerva/web/stable/dir/2/moved
echo "moved: $?"
ln /minerva/web/stable/dir/1/file /minerva/web/stable/dir/2/second
echo "linked: $?"
exec 3> /minerva/web/stable/open
dd if=/dev/zero bs=1M count=3 2> /dev/null >&3
rm /minerva/web/stable/open
rm -r /minerva/web/stable/dir/8
dd if=/dev/zero of=/minerva/web/stable/full bs=1M count=64 2> /dev/null
echo "full: $?"
rm /minerva/web/stable/full
sleep 12
echo "same: $(differs) $(minerva-fs status | grep -c 'web/stable')"
exec 3>&-
minerva-fs doctor > /tmp/doctor
echo "doctor: $(grep -c 'the kernel counts projects there too' /tmp/doctor) $(grep -c 'counted as well by the kernel, as project' /tmp/doctor)"

# Past the service, as nobody should: the kernel sees it.
dd if=/dev/zero of=/disk/pool/tenants/web/strange bs=1M count=7 2> /dev/null
tries=0
while [ "$(differs)" = 0 ] && [ $tries -lt 100 ]; do sleep 0.5; tries=$((tries + 1)); done
echo "differs: $(differs) $(minerva-fs status | grep -c '73[0-9]* bytes more and 1 files more')"

# A kill leaves the project as it is; a start counts anew.
kill -9 $service
wait $service 2> /dev/null
serve
sleep 6
echo "again: $(differs) $(lsattr -pd /disk/pool/tenants/web | awk '{print $1}')"
# A start that was cut off before all had the project goes on.
end
echo "$(cat /disk/pool/projects/web) part" > /disk/pool/projects/web
rm -r /minerva/web 2> /dev/null
find /disk/pool/tenants/web -type l -exec rm {} \;
chattr -p 0 /disk/pool/tenants/web/dir/2/file
serve
echo "goes-on: $(lsattr -p /disk/pool/tenants/web/dir/2/file | awk '{print $1}') $(cat /disk/pool/projects/web)"
# A tenant that is taken out has none any more.
settings kernel '[tenants.other]'
minerva-fs reload > /dev/null
tries=0
while [ -e /disk/pool/projects/web ] && [ $tries -lt 100 ]; do sleep 0.2; tries=$((tries + 1)); done
echo "left: $(lsattr -p /disk/pool/tenants/web/dir/2/file | awk '{print $1}') $(lsattr -pd /disk/pool/tenants/other | awk '{print $1}')"
end
settings none '[tenants.other]'
serve
echo "off: $(lsattr -pd /disk/pool/tenants/other | awk '{print $1}') $(ls /disk/pool/projects | wc -l)"
end
echo "ended: $?"
cat /tmp/service >&2
