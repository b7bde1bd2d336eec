# Under a wrapper that starts a program, as the profiler of the article does.
env trtexec --loadEngine=model.plan --warmUp=0 --duration=0 --iterations=50
