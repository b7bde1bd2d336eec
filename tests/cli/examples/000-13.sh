trtexec --loadEngine=model.plan --streams=2 --iterations=10 --warmUp=0 --duration=0
