trtexec \
    --onnx=resnet18.onnx \
    --saveEngine=resnet18-fp32.plan \
    --minShapes=x:1x3x224x224 \
    --optShapes=x:4x3x224x224 \
    --maxShapes=x:16x3x224x224 \
    --memPoolSize=workspace:1024MiB \
    --verbose \
    > result-fp32.txt 2>&1
