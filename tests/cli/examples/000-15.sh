trtexec --onnx=resnet18.onnx --dumpProfile --profilingVerbosity=detailed --dumpLayerInfo --iterations=5 --warmUp=0 --duration=0
