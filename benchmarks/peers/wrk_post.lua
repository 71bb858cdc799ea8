-- A POST of 10 KB: the wrk twin of workflows.Post.
wrk.method = "POST"
wrk.body = string.rep("x", 10000)
