trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --workspace=1024
