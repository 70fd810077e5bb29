# Files that a guest defers to a disk of its own, and kills of what moves them. Each line is a name and an answer.
mkdir -p /minerva /data /var/lib
mount -t virtiofs -o nosuid,nodev minerva /minerva
mke2fs -q /dev/vda > /dev/null && mount -t ext4 /dev/vda /data
mkdir /data/pool /data/out /etc/minerva
printf '[server]\nrole = "guest"\n[pools.stable]\npath = "/data/pool"\n' > /etc/minerva/fs.toml
serve() {
    minerva-fs 2>> /tmp/service &
    service=$!
    until minerva-ctl cache status > /dev/null 2>&1 || ! kill -0 $service 2> /dev/null; do sleep 0.2; done
}
serve

# At its place at once, and it waits, as nobody says that the disk is quiet.
echo content | minerva-ctl cache put /data/out/first > /dev/null
echo "put: $? $(test -L /data/out/first; echo $?) $(cat /data/out/first)"
sleep 5
echo "waits: $(test -L /data/out/first; echo $?) $(minerva-ctl cache deferred | grep -c 'not known')"

# Who has it open keeps it in the pool.
exec 3>> /data/out/first
minerva-ctl cache flush --no-wait > /dev/null
sleep 3
echo "open: $(test -L /data/out/first; echo $?)"
echo more >&3
exec 3>&-
minerva-ctl cache flush > /dev/null 2>&1
echo "moved: $? $(test -L /data/out/first; echo $?) $(cat /data/out/first | tr '\n' ' ')$(stat -c '%a %h' /data/out/first)"
echo "pool: $(ls /minerva/stable/.deferred | wc -l)"

# It is killed at any moment while files are put and move.
n=0
while [ $n -lt ROUNDS ]; do
    for k in 1 2 3; do
        dd if=/dev/urandom of=/tmp/$n-$k bs=16k count=$((n % 7 + 1)) 2> /dev/null
        minerva-ctl cache put /data/out/$n-$k --from /tmp/$n-$k > /dev/null 2>> /tmp/refused && echo $n-$k >> /tmp/put
    done
    minerva-ctl cache flush --no-wait > /dev/null 2>&1
    usleep $(( (n * 7919 + SEED) % 400 * 1000 ))
    kill -9 $service
    wait $service 2> /dev/null
    serve
    n=$((n + 1))
done
minerva-ctl cache flush > /dev/null 2>> /tmp/refused
echo "flushed: $?"
lost=0 links=0 files=0
while read -r name; do
    files=$((files + 1))
    cmp -s /tmp/$name /data/out/$name || lost=$((lost + 1))
    if [ -L /data/out/$name ]; then links=$((links + 1)); fi
done < /tmp/put
echo "after-kills: lost $lost links $links dangling $(find /data/out -type l | wc -l) left $(ls -a /data/out | grep -c minerva) pool $(ls /minerva/stable/.deferred | wc -l)"
echo "files: $files"

# The service of the host is killed too: what waits is not taken for gone.
echo kept > /tmp/kept
minerva-ctl cache put /data/out/kept --from /tmp/kept > /dev/null
touch /minerva/stable/kill-service
tries=0
while [ -e /minerva/stable/kill-service ] || ! cat /data/out/kept > /dev/null; do
    sleep 0.5
    tries=$((tries + 1))
    if [ $tries -gt 240 ]; then break; fi
done 2> /dev/null
echo "host-back: $(test -L /data/out/kept; echo $?) $(cat /data/out/kept)"
sleep 3
timeout 60 minerva-ctl cache flush > /dev/null 2>&1
echo "host-moved: $? $(test -L /data/out/kept; echo $?) $(cat /data/out/kept)"
kill $service
wait $service
echo "ended: $?"
cat /tmp/service /tmp/refused >&2
