trtexec --verbose --noDataTransfers --useCudaGraph --warmUp=5000 \
    --iterations=100 --separateProfileRun --useSpinWait \
    --dumpLayerInfo --dumpProfile \ 
echo "exit $?"
mkdir -p results/alexnet
trtexec --onnx=models/alexnet/alexnet_fp16.onnx --saveEngine=models/alexnet/alexnet_fp16.engine --skipInference \
    --profilingVerbosity=detailed --fp16 > build.log 2>&1
# The article's --warmUp=5000 and the default duration are shortened here: nothing below depends on them.
trtexec --verbose --noDataTransfers --useCudaGraph --warmUp=50 --duration=0.2 \
    --iterations=100 --separateProfileRun --useSpinWait \
    --dumpLayerInfo --dumpProfile \
    --loadEngine=models/alexnet/alexnet_fp16.engine \
    --exportTimes=results/alexnet/alexnet_fp16.timing.json \
    --exportProfile=results/alexnet/alexnet_fp16.profile.json \
    --exportLayerInfo=results/alexnet/alexnet_fp16.graph.json \
    --timingCacheFile=alexnet_engine_cache \
    --profilingVerbosity=detailed \
    --fp16 > alexnet_fp16.engine.profile.log 2>&1
