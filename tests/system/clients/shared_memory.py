"""Python's standard library alone: tensors in shared memory of the server's host, by /v2.

The server must let it: kldivd --shared-memory kldiv_"""
import array
import json
import os
import sys
import urllib.request
from multiprocessing import shared_memory

url = sys.argv[1]
name = "kldiv_example_%d" % os.getpid()


def post(path, **body):
    with urllib.request.urlopen(url + path, json.dumps(body).encode()) as answer:
        return json.load(answer)


def infer(datatype, typecode, reduction, outputs):
    """Puts input and target one after the other, and asks for their loss."""
    inputs, offset = [], 0
    for tensor, values in ("input", [-1, -0.5, -2, -0.25]), ("target", [0.25, 0.75, 0.5, 0.5]):
        data = array.array(typecode, values).tobytes()
        memory.buf[offset:offset + len(data)] = data
        inputs.append({"name": tensor, "datatype": datatype, "shape": [2, 2],
                       "parameters": {"shared_memory_region": name, "shared_memory_offset": offset,
                                      "shared_memory_byte_size": len(data)}})
        offset += len(data)
    return post("/models/kl_div/infer", inputs=inputs, outputs=outputs,
                parameters={"reduction": reduction})


memory = shared_memory.SharedMemory(name, create=True, size=4096)
post("/systemsharedmemory/region/%s/register" % name, key=name, offset=0, byte_size=4096)
try:
    print(infer("FP64", "d", "batchmean", [{"name": "loss"}])["outputs"][0]["data"][0])

    place = {"shared_memory_region": name, "shared_memory_offset": 1024,
             "shared_memory_byte_size": 16}
    infer("FP32", "f", "none", [{"name": "loss", "parameters": place}])
    print(sum(array.array("f", memory.buf[1024:1040].tobytes())) / 2)
finally:
    post("/systemsharedmemory/region/%s/unregister" % name)
    memory.close()
    memory.unlink()
