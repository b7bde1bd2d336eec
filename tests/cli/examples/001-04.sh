ln -s "$(command -v trtexec)" trtexec.exe
./trtexec.exe --loadEngine=model.plan --iterations=1 --warmUp=0 --duration=0
