/* Requests by their raw bytes, for this server and for proxies before it. */
#pragma once

#include <stddef.h>

#define BYTES(literal) literal, sizeof(literal) - 1
#define POST "POST /kl_div HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

/* HIDDEN: a request of 41 bytes that one reader takes for a body, or drops, and another for a request. */
#define HIDDEN "GET /readyz HTTP/1.1\r\nHost: a\r\nX: hid\r\n\r\n"

struct raw_request {
    const char *bytes;
    size_t size;
    int status; /* of the server's only answer, after which it closes */
};

/* refused: framing that a proxy might read in another way. */
static const struct raw_request refused[] = {
    {BYTES("GET /livez\0 HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /live\0z HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\0\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\0b\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\nHost: a\n\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\rX: y\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\n\n"), 400},
    {BYTES("GET  /livez HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez  HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1 \r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/2.0\r\nHost: a\r\n\r\n"), 505},
    {BYTES("GET /livez http/1.0\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a \r\n\r\n"), 400},
    {BYTES(POST "Content-Length: 5 \r\n\r\n{   }"), 400},
    {BYTES(POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"), 400},
    {BYTES(POST "Expect: 100-continue \r\nContent-Length: 2\r\n\r\n{}"), 400},
    {BYTES(CHUNKED "x\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES("GET /livez http/1.1\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\n: x\r\nHost: a\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\n: x\r\nX: y\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\nX y\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost:\r\n\r\n"), 400},
    {BYTES(POST "Content-Length: +5\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length: -1\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length: 0x5\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length:\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length: 5, 5\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length: 5 5\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length: 18446744073709551621\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length\t: 5\r\n\r\n{   }"), 400},
    {BYTES(POST "Transfer-Encoding: chunked\0x\r\n\r\n0\r\n\r\n"), 400},
    {BYTES(POST "Transfer-Encoding: \x0b"
                "chunked\r\n\r\n0\r\n\r\n"),
     400},
    {BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 400},
    {BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2;x\ny\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2;\0\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "0x2\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "+2\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2 \r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{} \r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "ffffffffffffffff1\r\n{}\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nX: \x01\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nX y\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nX: y\0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nX: y\n\r\n"), 400},
    {BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400},
    /* Two lengths: CL.TE, TE.CL, CL.CL, TE.TE. */
    {BYTES(POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"), 400},
    {BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n29\r\n" HIDDEN
                "\r\n0\r\n\r\n"),
     400},
    {BYTES(POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n{   }"), 400},
    {BYTES(POST "Content-Length: 5\r\nContent-Length: 46\r\n\r\n{   }" HIDDEN), 400},
    {BYTES(POST "Content-Length: 0\r\nContent-Length: 41\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n" HIDDEN),
     400},
    {BYTES(POST "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN),
     400},
    {BYTES(POST "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding: chunked;x\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "Content-Length: 41\r\n Transfer-Encoding: chunked\r\n\r\n" HIDDEN), 400},
    {BYTES(POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(
         "POST /kl_div HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" HIDDEN),
     400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 41\r\n\r\n" HIDDEN), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n29\r\n" HIDDEN
           "\r\n0\r\n\r\n"),
     400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\n\r\n"), 400},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n"), 400},
    {BYTES(CHUNKED "0;x\n\r\n\r\n" HIDDEN), 400},
    {BYTES(CHUNKED "2;x\n{}\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n-0\r\n\r\n" HIDDEN), 400},
    {BYTES(CHUNKED "100000000000000002\r\n{}\r\n0\r\n\r\n" HIDDEN), 400},
    {BYTES(CHUNKED "2\r\n{}XX29\r\n" HIDDEN "\r\n0\r\n\r\n"), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\n\n" HIDDEN), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nX: y\r\n folded\r\n\r\n" HIDDEN), 400},
    {BYTES(CHUNKED "2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n" HIDDEN), 400},
};
