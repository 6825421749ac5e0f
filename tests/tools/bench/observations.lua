-- wrk -s observations.lua URL -- MONITORS: posts 20 counts to monitors m0, m1, ... of the group bench in
-- turn.
local paths, at = {}, 0
function init(args)
    wrk.headers["Content-Type"] = "application/json"
    for i = 1, tonumber(args[1]) do
        paths[i] = "/monitors/bench/m" .. (i - 1) .. "/observations"
    end
end
function request()
    at = at % #paths + 1
    return wrk.format("POST", paths[at], nil, '{"counts":[5,3,8,1,4,6,7,2,9,5,3,4,8,1,2,6,7,5,4,3]}')
end
