// Node before 22.15: the program stays the parent of the worker.
delete process.execve;
process.execve = undefined;
