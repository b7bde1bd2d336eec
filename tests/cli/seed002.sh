set -e
set -x
clear
rm -rf ./*log ./*.plan ./*.cache ./*.lock ./*.json ./*.raw

# 01 run an ONNX model
trtexec \
    --onnx=resnet18.onnx \
    > 01-run_onnx.log 2>&1

# 02 build a plan with a timing cache
trtexec \
    --onnx=resnet18.onnx \
    --saveEngine=resnet18.plan \
    --timingCacheFile=resnet18.cache \
    --minShapes=x:1x3x224x224 \
    --optShapes=x:4x3x224x224 \
    --maxShapes=x:16x3x224x224 \
    --fp16 \
    --noTF32 \
    --memPoolSize=workspace:1024MiB \
    --builderOptimizationLevel=5 \
    --maxAuxStreams=4 \
    --skipInference \
    --verbose \
    > 02-generate_engine.log 2>&1

# 03 run the plan
trtexec \
    --loadEngine=resnet18.plan \
    --shapes=x:4x3x224x224 \
    --noDataTransfers \
    --useSpinWait \
    --useCudaGraph \
    --verbose \
    > 03-run_engine.log 2>&1

# 04 layer information
trtexec \
    --onnx=resnet18.onnx \
    --skipInference \
    --profilingVerbosity=detailed \
    --dumpLayerInfo \
    --exportLayerInfo="./04-exportLayerInfo.log" \
    > 04-export_layer_info.log 2>&1

# 05 profile and times
trtexec \
    --loadEngine=resnet18.plan \
    --dumpProfile \
    --exportTimes="./05-exportTimes.json" \
    --exportProfile="./05-exportProfile.json" \
    > 05-export_profile.log 2>&1

# 06 save inputs and outputs
trtexec \
    --loadEngine=resnet18.plan \
    --dumpOutput \
    --dumpRawBindingsToFile \
    > 06-save_data.log 2>&1

# 07 load inputs
trtexec \
    --loadEngine=resnet18.plan \
    --loadInputs=x:x.input.1.3.224.224.Float.raw \
    --dumpOutput \
    > 07-load_data.log 2>&1
