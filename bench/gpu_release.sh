#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a release says of GPUs, measured on two cards of one host, in three parts of ten minutes at most:
#
#     bench/gpu_release.sh checks|torch|rest FOLDER [SECONDS]
#
# checks: a cold and a warm build alone, then side by side ONNX's node cases, the kernel tests (our own of f16 under memcheck; those that are
# new under two more tools), the zoo in int8 and fp8, trained models in few bits; and what PyTorch compiles for the other parts. torch: the
# rows of gpu_compare.py, half of them on each card. rest: models in codes, the rows that had no time, --best, tokens, SegFormer, large
# products, what only moves data, replicas, and racecheck. Figures, logs and timing caches go to FOLDER; what the SECONDS (575) do not
# suffice for is cut off. A card has half of the cores while anything is timed.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit

part=${1:-} out=$(realpath -m "${2:-.}") limit=${3:-575} begin=$SECONDS
bin=$PWD/build/release/bin kernels=$PWD/build/release/unit/hone_cuda_tactics_test zoo=/tmp/hone-zoo
export TORCHINDUCTOR_CACHE_DIR=/tmp/hone-inductor TRITON_CACHE_DIR=/tmp/hone-triton
export PATH=$PATH:/usr/local/cuda/bin
mkdir -p "$out/logs"
logs=$out/logs half=$(($(nproc) / 2))

say() { echo "[$((SECONDS - begin)) s] $*"; }
left() { local seconds=$((limit - (SECONDS - begin))); echo $((seconds > 5 ? seconds : 5)); }
card() {  # NUMBER COMMAND...: on that card and its half of the cores, for the time that is left
  local number=$1; shift
  CUDA_VISIBLE_DEVICES=$number timeout "$(left)" taskset -c $((number * half))-$((number * half + half - 1)) "$@"
}
model() { python3 -c 'import pathlib, sys; sys.path[:0] = ["scripts", "tests"]; import materialise; print(materialise.materialise(sys.argv[1], pathlib.Path(sys.argv[2])))' "$1" "$zoo"; }
at() { echo "--minShapes=$1 --optShapes=$1 --maxShapes=$1"; }

tests() {  # NAME SHARDS COMMAND...: the kernel tests in shards on both cards
  local name=$1 shards=$2 shard running=(); shift 2
  for ((shard = 0; shard < shards; ++shard)); do
    CUDA_VISIBLE_DEVICES=$((shard % 2)) GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard nice timeout "$(left)" "$@" >"$logs/$name-$shard.log" 2>&1 &
    running+=($!)
  done
  wait "${running[@]}"
  say "$name: $(cat "$logs/$name"-*.log | grep -c '\[       OK') tests right, $(cat "$logs/$name"-*.log | grep -c '\[  FAILED  \].*(.* ms)') wrong, $(cat "$logs/$name"-*.log | grep 'ERROR SUMMARY' | sort | uniq -c | tr '\n' ' ')"
}

sanitize() {  # TOOL FILTER
  [ "$(left)" -lt 30 ] || tests "$1" 24 compute-sanitizer --tool "$1" "$kernels" --gtest_filter="$2"
}
young='*/cuda_f16_matmul*:*/cuda_f16_attention*:*/cuda_f16_bytes*:*/cuda_f16_conv*:*/cuda_f16_quantize*:*/cuda_f16_rnn*:*/cuda_f16_pool*:*/cuda_f16_reduce*:*/cuda_f16_resize*:*/cuda_f16_norm*:*/cuda_f16_pointwise_3?:*/cuda_f16_pointwise_4?:*/cuda_f16_movement_5?'

compile_torch() {  # what the other parts compare with
  local batch
  for batch in 1 32; do
    echo stop | CUDA_VISIBLE_DEVICES=0 timeout "$(left)" python3 bench/gpu_torch.py llama_160m_token $batch &
  done
  CUDA_VISIBLE_DEVICES=0 timeout "$(left)" python3 bench/gpu_compare.py prepare segformer:1
  CUDA_VISIBLE_DEVICES=1 timeout "$(left)" python3 bench/gpu_compare.py prepare --jobs 4
  wait
}

checks() {
  local which resnet node zoo_int8 zoo_fp8 trained prepared
  resnet=$(model resnet50.ts)
  for which in cold warm; do
    # shellcheck disable=SC2046
    card 0 "$bin/trtexec" --device=cuda:0 --onnx="$resnet" $(at x:1x3x224x224) --fp16 --skipInference --saveEngine=/tmp/resnet.plan --timingCacheFile="$out/build.cache" >"$logs/resnet50-$which.log" 2>&1 || return 1
    say "resnet50 $which: $(grep -o 'Engine built.*' "$logs/resnet50-$which.log")"
  done
  card 1 python3 tests/conformance/suite.py --device=cuda:0 --jobs=14 >"$logs/node.log" 2>&1 & node=$!
  CUDA_VISIBLE_DEVICES=0 timeout "$(left)" python3 bench/gpu.py --models all --precisions int8 --check-only --jobs 10 --level 1 --inferences 20 --json "$out/zoo-int8.json" >"$logs/zoo-int8.log" 2>&1 & zoo_int8=$!
  CUDA_VISIBLE_DEVICES=1 timeout "$(left)" python3 bench/gpu.py --models all --precisions fp8 --check-only --jobs 10 --level 1 --inferences 20 --json "$out/zoo-fp8.json" >"$logs/zoo-fp8.log" 2>&1 & zoo_fp8=$!
  compile_torch >"$logs/prepare.log" 2>&1 & prepared=$!
  CUDA_VISIBLE_DEVICES=0 timeout "$(left)" python3 bench/gpu_trained.py --json "$out/trained.json" >"$logs/trained.log" 2>&1 & trained=$!
  tests kernels 16 "$kernels" --gtest_filter='-*/cuda_f16_*'
  sanitize memcheck '*/cuda_f16_*'
  sanitize synccheck "$young"
  sanitize initcheck "$young"
  wait $node $trained $prepared $zoo_int8 $zoo_fp8
  say "node cases: $(tail -n 1 "$logs/node.log")"
  cat "$logs/trained.log"; grep -c compiled "$logs/prepare.log"; tail -qn 1 "$logs"/zoo-*.log
}

compare() {  # NUMBER ROW...
  local run=$SECONDS
  [ $# -lt 2 ] || card "$1" python3 bench/gpu_compare.py run "${@:2}" --rounds 2 --cache "$out/card$1.cache" --json "$out/compare$1-$run.json" >"$logs/compare$1-$run.log" 2>&1
}
rows_left() {  # those of which no file has a figure
  python3 - "$out"/compare*.json <<'END'
import json, sys
sys.path[:0] = ["bench"]
import gpu_compare
done = {(row["model"], row["batch"]) for path in sys.argv[1:] for row in json.load(open(path))["rows"] if "ratio" in row}
print(*[f"{model}:{batch}" for model, _, batch in gpu_compare.ROWS if (model, batch) not in done])
END
}
torch() {
  compare 0 resnet50:1 resnet50:32 hf_bert_base:1 vit_b_16:32 efficientnet_b0:1 swin_t:1 hf_gpt2:1 mobilenet_v3_large:1 mobilenet_v2:1 shufflenet_v2_x1_0:1 densenet121:1 vgg16:1 inception_v3:1 squeezenet1_1:1 alexnet:1 hf_distilbert:1 &
  compare 1 resnet50:128 hf_bert_base:32 vit_b_16:1 efficientnet_b0:32 yolov8n_like:1 swin_t:32 resnet18:1 convnext_tiny:32 mobilenet_v2:32 shufflenet_v2_x1_0:32 densenet121:32 vgg16:32 inception_v3:32 squeezenet1_1:32 alexnet:32 hf_distilbert:32 &
  wait
  cat "$logs"/compare*.log
}

codes() {  # NUMBER NAME KINDS MODEL...
  # shellcheck disable=SC2086
  card "$1" python3 bench/gpu_codes.py "${@:4}" --kinds $3 --cache "$out/card$1.cache" --json "$out/codes-$2.json" --logs "$logs"
}
rest() {
  local batch name shapes
  "$bin/hone" cache merge "$out/card0.cache" "$out/card1.cache" && cp "$out/card0.cache" "$out/card1.cache"
  {
    codes 0 resnet50 int8 resnet50.ts:1 resnet50.ts:128
    # shellcheck disable=SC2046
    card 0 "$bin/trtexec" --device=cuda:0 --onnx="$(model resnet50.ts)" $(at x:1x3x224x224) --best --skipInference --saveEngine=/tmp/best.plan | grep 'Engine built'
    card 0 python3 bench/gpu_compare.py run segformer:1 --rounds 2 --json "$out/segformer.json"
    card 0 python3 bench/gpu_tokens.py --rounds 2 --json "$out/tokens.json"
    card 0 python3 bench/gpu_products.py 2048 4096 --json "$out/products.json"
    card 0 python3 bench/gpu_movement.py --megabytes 8 --jobs 4 --json "$out/movement.json"
    say "card 0"
  } >"$logs/rest0.log" 2>&1 &
  {
    codes 1 bert "fp8 int8 sparse" hf_bert_base.ts:32
    codes 1 vit fp8 torch:vit_b_16:32
    # shellcheck disable=SC2046
    compare 1 $(rows_left)
    codes 1 gpt2 fp8 torch:hf_gpt2:32
    say "card 1"
  } >"$logs/rest1.log" 2>&1 &
  wait
  cat "$logs"/rest?.log
  for batch in 1 32; do
    for name in resnet50.ts hf_bert_base.ts; do
      shapes=x:${batch}x3x224x224
      [ $name = resnet50.ts ] || shapes=input_ids:${batch}x128,attention_mask:${batch}x128
      # shellcheck disable=SC2046
      timeout "$(left)" python3 bench/replicas.py "$(model $name)" --rounds 1 -- --fp16 $(at "$shapes") --buildBudget=12 --timingCacheFile="$out/card0.cache" | sed "s/^/batch $batch: /"
    done
  done
  sanitize racecheck "$young"
}

case $part in
  checks|torch|rest) "$part" ;;
  *) sed -n '4,13s/^# \?//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
say "$part"
