"""Machine code from the loop IR: LLVM IR text, object code, its cache, and the threads that run it."""
