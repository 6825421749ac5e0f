-- wrk -s small.lua URL -- FILE TYPE: posts the file's bytes.
function init(args)
    local file = io.open(args[1], "rb")
    wrk.method = "POST"
    wrk.headers["Content-Type"] = args[2]
    wrk.body = file:read("*a")
    file:close()
end
