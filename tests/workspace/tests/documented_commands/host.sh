# A host for commands of the documentation: it ends with this shell, and nothing that is done in it stays.
# Usage: host.sh FOLDER LINE, in mount and network namespaces of its own. FOLDER is for what it writes; LINE is a
# pseudoterminal for /dev/ttyUSB0, or empty.
set -eu
folder=$1 line=$2

mount -t tmpfs none "$folder"
for of in etc usr var/lib; do
    name=${of//\//-}
    mkdir "$folder/$name" "$folder/$name.work"
    mount -t overlay overlay -o "lowerdir=/$of,upperdir=$folder/$name,workdir=$folder/$name.work" "/$of"
done
# As on a machine on which thinair never ran.
rm -rf /etc/thinair /var/lib/thinair /usr/bin/thinair /usr/lib/sysusers.d/thinair.conf /etc/systemd/system/thinair*
sed -i /^thinair:/d /etc/passwd /etc/shadow /etc/group /etc/gshadow
mount -t tmpfs none /run

if [ -n "$line" ]; then
    mkdir "$folder/dev"
    mount --rbind /dev "$folder/dev"
    mount -t tmpfs none /dev
    for device in full net null pts ptmx random tty urandom zero; do
        if [ -d "$folder/dev/$device" ]; then mkdir "/dev/$device"; else touch "/dev/$device"; fi
        mount --rbind "$folder/dev/$device" "/dev/$device"
    done
    ln -s /proc/self/fd /dev/fd
    ln -s "$line" /dev/ttyUSB0
fi

# As udev leaves it: anybody may open the driver of TUN devices; an interface takes the capability.
mknod -m 666 /run/tun c 10 200
mount --bind /run/tun /dev/net/tun

ip link set lo up
ip netns add field
touch "$folder/ready"
exec sleep infinity
