trtexec --loadEngine=model.plan --useCudaGraph --noDataTransfers --iterations=20 --warmUp=0 --duration=0
trtexec --loadEngine=model.plan --useCudaGraph --noDataTransfer
