"""The worker: runs parts of workflows on its cores and tells until it is heard."""
