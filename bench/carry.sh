#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What measurements need on a machine with GPUs and PyTorch where nothing can be built or installed, as archives:
#
#     bench/carry.sh programs|tests|peers|triton [PYTHON]     writes build/carry-WHAT.tar.xz, for CPython 3.12 unless another is named
#
# programs: build/release with every library that a plain machine lacks, and the Python package. tests: those of the kernels. peers: OpenVINO for processors, and
# what reads ONNX models into PyTorch. triton: the server that ./dev test has installed and its gRPC client, but grpcio, which has to be
# there. There, beside a checkout, bench/carried.sh COMMAND... unpacks them and runs the command with them.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

what=${1:-} python=${2:-3.12} release=build/release
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

wheels() {  # PACKAGE...: unpacked into carried/WHAT/site
  local tags=(manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux1) tag platforms=() wheel
  for tag in "${tags[@]}"; do platforms+=(--platform "${tag}_x86_64"); done
  .venv/bin/pip download -q --no-deps --only-binary=:all: --python-version "$python" --implementation cp "${platforms[@]}" -d "$folder/wheels" "$@"
  for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/carried/$what/site"; done
  rm -rf "$folder/wheels"
}
pinned() { grep -h "^$1==" scripts/requirements*.txt | head -n 1; }

# What the linker finds outside of the C and C++ libraries and NVIDIA's.
libraries() {
  local file
  find "$folder/release" -type f | while read -r file; do
    { readelf -h "$file" && strip --strip-unneeded "$file"; } >/dev/null 2>&1 || continue
    { ldd "$file" 2>/dev/null || true; } | awk '/=> \//{print $3}'
  done | sort -u | grep -vE '/(lib(c|m|dl|rt|pthread|z|stdc\+\+|gcc_s|hone|cuda[^/]*|nv[^/]*)|ld-linux[^/]*)\.so'
}

case $what in
  programs)
    mkdir -p "$folder/carried/$what/lib" "$folder/release"
    cp -a $release/bin $release/lib "$folder/release"
    cp -rL $release/python "$folder/release"
    libraries | xargs -I{} cp -L {} "$folder/carried/$what/lib"
    find "$folder/carried" -name '*.so*' -exec strip --strip-unneeded {} +
    wheels "$(pinned nanobind-backend)"
    ;;
  tests)
    mkdir -p "$folder/release/unit"
    strip -o "$folder/release/unit/hone_cuda_tactics_test" $release/unit/hone_cuda_tactics_test
    ;;
  peers)
    wheels "$(pinned openvino)" "$(pinned openvino-telemetry)" onnx2torch==1.5.15
    cd "$folder/carried/$what/site/openvino"
    rm -rf include cmake libs/{cache.json,*gpu*,*npu*,*tensorflow*,*pytorch*,*paddle*,*gguf*,*jax*,*auto*,*hetero*,*proxy*}
    cd - >/dev/null
    ;;
  triton)
    cp -r build/.triton "$folder/.triton"
    rm -rf "$folder"/.triton/{perf,include,gevent,greenlet,geventhttpclient} "$folder"/.triton/*.dist-info "$folder"/.triton/*cpython*
    rm -rf "$folder"/.triton/pytriton/tritonserver/{python_backend_stubs,backends/python}
    wheels "$(pinned python-rapidjson)"
    rm -rf "$folder/.triton/grpc"
    ;;
  *) sed -n '4,10s/^# \?//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
tar -C "$folder" -c . | xz -T0 -6 >"build/carry-$what.tar.xz"
ls -l "build/carry-$what.tar.xz"
