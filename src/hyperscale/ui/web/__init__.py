"""The page of a run, and of a folder of runs, in a browser. The server knows HTTP and no framework;
the page asks nothing of any other machine."""
