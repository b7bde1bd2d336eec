for mode in none prefer obey; do
  trtexec --onnx=resnet18.onnx --skipInference --builderOptimizationLevel=0 --fp16 --precisionConstraints=$mode --layerPrecisions=*:fp16
done
