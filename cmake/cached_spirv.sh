#!/bin/sh
# cached_spirv.sh CACHE OUT FOLDER SOURCE COMMAND...   Runs COMMAND, which writes OUT from SOURCE, portable* beside it and
# the .glsl files of FOLDER and of those that the command names as -IFOLDER, unless CACHE has what the same command made of
# the same files: half of the time of a build is this compiler's,
# and its output is the same for every preset. A compiler of another version has another CACHE.
set -eu
cache=$1 out=$2 folder=$3 source=$4
shift 4
built=
for word; do
    case $word in -I?*) built="$built ${word#-I}/*.glsl" ;; esac
done
# shellcheck disable=SC2086  # patterns of relative folders
key=$({
    printf '%s\n' "$@" | grep -vxF -e "$out"
    cat "$source" "$folder"/*.glsl $built
    find "${source%/*}" -name 'portable*' | sort | xargs -r cat
} | sha256sum)
kept=$cache/${key%% *}
if ! cp "$kept" "$out" 2>/dev/null; then
    "$@"
    mkdir -p "$cache"
    cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"
fi
