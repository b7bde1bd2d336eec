for mode in disable enable force; do
  trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --sparsity=$mode
done
trtexec --onnx=resnet18.onnx --skipInference --sparsity=some
