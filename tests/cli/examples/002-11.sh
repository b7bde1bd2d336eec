trtexec model-02.plan \
    --trt \
    --shapes=tensorX:4x1x28x28 \
    --noDataTransfers \
    --useSpinWait \
    --useCudaGraph \
    --verbose \
    > result-03.log 2>&1
echo "exit $?"
trtexec model-02.plan --onnx=resnet18.onnx --trt
