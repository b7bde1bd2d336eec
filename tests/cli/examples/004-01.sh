mkdir -p results/alexnet
trtexec --verbose \
    --onnx=models/alexnet/alexnet_fp16.onnx \
    --saveEngine=models/alexnet/alexnet_fp16.engine \
    --exportLayerInfo=results/alexnet/alexnet_fp16.graph.json \
    --timingCacheFile=alexnet_engine_cache \
    --profilingVerbosity=detailed \
    --fp16 > alexnet_fp16.engine.build.log 2>&1
