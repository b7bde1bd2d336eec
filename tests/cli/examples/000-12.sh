trtexec --onnx=resnet18.onnx --builderOptimizationLevel=0 --saveEngine=built.plan --buildOnly
