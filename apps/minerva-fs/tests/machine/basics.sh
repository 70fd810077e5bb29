# What a guest can do with its trees, and what it cannot. Each line is a name and an answer.
mkdir -p /minerva
mount -t virtiofs -o nosuid,nodev minerva /minerva
echo "mounted: $?"
cd /minerva/stable
echo "owner: $(stat -c '%u:%g %a' .)"

echo first > new && sync new && mv new name && echo second > new && mv new name
echo "renamed: $? $(cat name) $(ls | wc -l)"
mkdir d && echo x > d/y && ln d/y d/z && rm d/y
echo "linked: $? $(stat -c %h d/z) $(cat d/z)"
echo "shared: $(mkfifo d/pipe; (echo through > d/pipe &); cat d/pipe)"

# Users of the guest's own.
echo mine > user && chown 1000:1000 user && chmod 4755 user
echo "user: $(stat -c '%u:%g %a' user)"

# Out of the tree: by a link, by a name, and beside the trees.
ln -s /etc/passwd out && ln -s ../../other/stable/secret neighbour
cat out 2> /dev/null; echo "out: $?"
cat neighbour 2> /dev/null; echo "neighbour: $?"
ls /minerva
echo "above: $(ls /minerva/.. | grep -c other) $(ls /minerva | wc -l)"
touch /minerva/intruder 2> /dev/null; echo "beside: $?"
mknod node c 1 3 2> /dev/null; echo "node: $?"
mkdir .units 2> /dev/null; echo "ours: $?"

# The room is the quota.
ls /minerva/temporary > /dev/null
echo "room: $(df -k /minerva/stable | awk 'END { print $2 }') $(df -k /minerva/temporary | awk 'END { print $2 }')"
for tree in stable temporary; do
    dd if=/dev/zero of=/minerva/$tree/big bs=1M count=100 2> /tmp/said
    echo "full-$tree: $? $(grep -c 'No space left' /tmp/said) $(stat -c %s /minerva/$tree/big)"
    rm /minerva/$tree/big
    echo again > /minerva/$tree/big
    echo "again-$tree: $?"
done
rm /minerva/*/big

# The service is killed under it.
cd /
exec 3>> /minerva/stable/held
echo before >&3
touch /minerva/stable/kill-service
tries=0
while [ -e /minerva/stable/kill-service ] || ! cat /minerva/stable/name > /dev/null; do
    sleep 0.5
    tries=$((tries + 1))
    if [ $tries -gt 240 ]; then break; fi
done 2> /dev/null
echo "served-again: $(cat /minerva/stable/name) $(cat /minerva/stable/held)"
echo after >&3 2> /dev/null; echo "held: $?"
echo more >> /minerva/stable/held; echo "reopened: $? $(tail -n 1 /minerva/stable/held)"
exec 3>&-

# What serves the guest is killed: who touches the trees waits, and so would an orderly end of the guest.
# Not even the request to kill it has an answer, if it is killed as soon as the file is made.
touch /minerva/stable/kill-virtiofsd &
sleep 3
cat /minerva/stable/name > /tmp/read 2>&1 &
reader=$!
sleep 5
kill -0 $reader 2> /dev/null; echo "waits: $?"
echo 0 > /dev/vport0p3
sleep 1
poweroff -n -f
