# Each of the article's frequent options in a suitable command.
set -e
trtexec --onnx=resnet18.onnx --saveEngine=resnet18-fp32.plan --minShapes=x:1x3x224x224 --optShapes=x:4x3x224x224 \
    --maxShapes=x:16x3x224x224 --memPoolSize=workspace:1024MiB --verbose --skipInference --fp16 --int8 --noTF32 --best \
    --sparsity=enable --builderOptimizationLevel=5 --timingCacheFile=timing.cache --profilingVerbosity=detailed > build.log 2>&1
trtexec --loadEngine=resnet18-fp32.plan --shapes=x:4x3x224x224 --warmUp=100 --duration=0.1 --iterations=100 \
    --useCudaGraph --noDataTransfers --streams=2 > run.log 2>&1
trtexec --loadEngine=resnet18-fp32.plan --iterations=5 --warmUp=0 --duration=0 --dumpProfile --exportProfile=layerProfile.txt > profile.log 2>&1
