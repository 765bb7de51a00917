#!/usr/bin/env bash
# Prints the number of files to compile at once: one per core, each with at least 2 GiB of memory.
cores=$(nproc)
by_memory=$(awk '/^MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo)
[ "$by_memory" -lt 1 ] && by_memory=1
echo $((cores < by_memory ? cores : by_memory))
