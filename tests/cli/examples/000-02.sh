trtexec --loadEngine=model.plan --warmUp=0 --duration=0 --iterations=50 --exportTimes=times.json
