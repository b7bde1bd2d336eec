#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command with what bench/carry.sh has put together: bench/carried.sh COMMAND...
set -euo pipefail
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/..
for archive in "$root"/build/carry-*.tar.xz; do
  [ -e "$archive.unpacked" ] || { tar -xJf "$archive" -C "$root/build" && touch "$archive.unpacked"; }
done
carried=$root/build/carried
LD_LIBRARY_PATH=$carried/programs/lib:$root/build/release/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PYTHONPATH=$carried/programs/site:$carried/peers/site:$carried/triton/site${PYTHONPATH:+:$PYTHONPATH}
HONE_CUDA_PATH=$(python3 -c "import glob, sys; print(':'.join(path for folder in sys.path for path in sorted(glob.glob(folder + '/nvidia/*/lib'))))")
export LD_LIBRARY_PATH PYTHONPATH HONE_CUDA_PATH PYTHONUNBUFFERED=1
exec "$@"
