#!/usr/bin/env bash
# Prints how many files to compile at once: one a core, at least 2 GiB of memory each.
cores=$(nproc)
by_memory=$(awk '/^MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo)
[ "$by_memory" -lt 1 ] && by_memory=1
echo $((cores < by_memory ? cores : by_memory))
