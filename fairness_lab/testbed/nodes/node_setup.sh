#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Runs in the new namespaces of a laboratory node: gives it its own directories,
# control groups, host name and bridge, then holds the namespaces.
# Arguments: NODE DIRECTORY CACHE [ADDRESS/PREFIX]...
# DIRECTORY/hierarchies has a line "MOUNT_POINT CONTROLLERS" for each cgroup
# hierarchy, with "v2" instead of controllers for the unified one.

set -eu

node=$1 directory=$2 cache=$3
shift 3

echo "$node" >/proc/sys/kernel/hostname
for path in etc/libvirt var/lib/libvirt var/log/libvirt var/lib/nova-fairness; do
    mkdir -p "/$path"
    mount --bind "$directory/$path" "/$path"
done
mkdir -p /var/cache/libvirt
mount --bind "$cache" /var/cache/libvirt
mount --bind "$directory/etc/hosts" /etc/hosts
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/libvirt /run/lock /run/nova-fairness-lab

while read -r mount_point controllers; do
    umount -l "$mount_point"
    if [ "$controllers" = v2 ]; then
        mount -t cgroup2 cgroup "$mount_point"
    else
        mount -t cgroup -o "$controllers" cgroup "$mount_point"
    fi
    echo $$ >"$mount_point/system/cgroup.procs"
done <"$directory/hierarchies"

# sysfs shows the interfaces of the network namespace in which it is mounted.
mkdir /run/cgroup
mount --move /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --move /run/cgroup /sys/fs/cgroup
rmdir /run/cgroup

ip link set lo up
ip link add br0 type bridge mcast_snooping 0
echo 0 >/proc/sys/net/ipv6/conf/br0/accept_dad
for address in "$@"; do
    ip addr add "$address" dev br0
done
ip link set br0 up

: >/run/nova-fairness-lab/ready
exec sleep infinity
