#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: four loads in cgroups of their own, and observe on them. BUILD_DIR SECONDS OUTPUT
build=$1
seconds=$2
output=$3
top=/sys/fs/cgroup/demo
b=/bin/busybox
$b mkdir $top
echo '+cpu +memory' >$top/cgroup.subtree_control
for name in quiet bursty throttled leaky; do $b mkdir $top/$name; done
echo '10000 100000' >$top/throttled/cpu.max
echo 64M >$top/leaky/memory.max
"$build/test/load" --cgroup=$top/quiet --anon=12 >/dev/null 2>&1 &
"$build/test/load" --cgroup=$top/bursty --anon=16 --busy=20/100 >/dev/null 2>&1 &
"$build/test/load" --cgroup=$top/throttled --busy=1000/1000 >/dev/null 2>&1 &
"$build/test/load" --cgroup=$top/leaky --anon=8 --leak=2048 >/dev/null 2>&1 &
exec "$build/pernode-agent" observe --interval=1s --duration="${seconds}s" --cpu-window=5s --output="$output" '/demo/*'
