trtexec --help
