trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --fp16 --precisionConstraints=obey --layerPrecisions=*:fp16,layer_1:fp32
trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --fp16 --precisionConstraints=prefer --layerPrecisions=*:fp16,layer_1:fp32
echo "and without:"
trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --fp16 --layerPrecisions=*:fp16,layer_1:fp32
