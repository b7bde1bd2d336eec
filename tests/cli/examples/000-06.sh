for mode in layer_names_only detailed none; do
  trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --profilingVerbosity=$mode --exportLayerInfo=$mode.json
done
