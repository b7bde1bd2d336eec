trtexec --onnx=resnet18.onnx --builderOptimizationLevel=0 --useDLACore=0 --allowGPUFallback --iterations=3 --warmUp=0 --duration=0
echo "as the page prints it:"
trtexec --onnx=resnet18.onnx –useDLACore=0 –allowGPUFallback
