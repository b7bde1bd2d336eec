trtexec --onnx=split.onnx --skipInference --builderOptimizationLevel=0 --precisionConstraints=obey --layerOutputTypes=*:fp16,layer_1:fp32+fp16
echo "three types for two outputs:"
trtexec --onnx=split.onnx --skipInference --builderOptimizationLevel=0 --precisionConstraints=obey --layerOutputTypes=*:fp16,layer_1:fp32+fp16+fp32
