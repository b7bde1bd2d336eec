trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --memPoolSize=workspace:1024.5,dlaSRAM:256
trtexec --onnx=resnet18.onnx --skipInference –-memPoolSize=workspace:1024
