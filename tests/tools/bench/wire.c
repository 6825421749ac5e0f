/* Large bodies over loopback: this server and a bare libmicrohttpd that drops them, interleaved,
 * each on one kept connection. Arguments: the two ports, the process id of this server. */
#include "lib/kldiv.h"
#include "tests/tools/bench/measure.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RUNS = 15 };

/* load: a request, and the label of its row in the table. */
struct load {
    const char *what, *target, *type;
    size_t json_size; /* bytes of an inference request's JSON, else 0 */
    char *body;
    size_t size;
    size_t numbers; /* number of elements for the time per number; 0 for none */
};

static int open_connection(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    return fd;
}

static void send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, 0);
        if (sent <= 0)
            abort();
        bytes += sent;
        size -= (size_t)sent;
    }
}

/* Reads one complete answer; returns its status. */
static int read_answer(int fd)
{
    static char bytes[1 << 16];
    size_t used = 0, content = 0;
    char *end = NULL;
    while (!end) {
        ssize_t n = recv(fd, bytes + used, sizeof bytes - 1 - used, 0);
        if (n <= 0)
            abort();
        used += (size_t)n;
        bytes[used] = '\0';
        end = strstr(bytes, "\r\n\r\n");
    }
    char *length = strcasestr(bytes, "content-length:");
    content = length ? strtoull(length + 15, NULL, 10) : 0;
    int status = atoi(bytes + 9);
    for (size_t got = used - (size_t)(end + 4 - bytes); got < content;) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0)
            abort();
        got += (size_t)n;
    }
    return status;
}

static double post(int fd, const struct load *load)
{
    char header[300];
    int size = snprintf(header, sizeof header,
                        "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                        "Content-Length: %zu\r\n",
                        load->target, load->type, load->size);
    if (load->json_size)
        size += sprintf(header + size, "Inference-Header-Content-Length: %zu\r\n", load->json_size);
    size += sprintf(header + size, "\r\n");
    double start = now_ns();
    send_all(fd, header, (size_t)size);
    send_all(fd, load->body, load->size);
    if (read_answer(fd) != 200)
        abort();
    return now_ns() - start;
}

/* Memory of a process in bytes: now, or the peak since forget_peak. */
static size_t memory(const char *process, const char *format)
{
    char path[64], line[200];
    size_t kib = 0;
    snprintf(path, sizeof path, "/proc/%s/status", process);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib << 10;
}

static void forget_peak(const char *process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/clear_refs", process);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

/* Waits until the server has returned unused memory to the system, which takes 10 s. */
static void wait_for_trim(const char *process)
{
    enum { RESTED = 48 << 20 };
    for (int i = 0; i < 30 && memory(process, "VmRSS: %zu") > RESTED; i++)
        sleep(1);
    forget_peak(process);
}

static void print_row(const struct load *load, int ours, int bare, const char *process)
{
    double a[RUNS], b[RUNS], ratios[RUNS];
    wait_for_trim(process);
    for (int i = -2; i < RUNS; i++) {
        double one = post(ours, load), other = post(bare, load);
        if (i < 0)
            continue;
        a[i] = one;
        b[i] = other;
        ratios[i] = one / other;
    }
    double time = median(a, RUNS);
    printf("| %-44s | %7.2f | %7.2f | %5.2f | %5.2f |", load->what, time / 1e6,
           median(b, RUNS) / 1e6, median(ratios, RUNS),
           (double)memory(process, "VmHWM: %zu") / (double)load->size);
    if (load->numbers)
        printf(" %5.1f |\n", time / (double)load->numbers);
    else
        puts(" |");
    fflush(stdout);
}

/* Writes n float32 of each tensor. */
static void put_tensors(char *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kl_store(KL_FLOAT32, to, i, log(drand48() + 1e-9));
        kl_store(KL_FLOAT32, to, n + i, drand48() + 1e-9);
    }
}

static struct load make_safetensors(const char *what, const char *target, size_t n)
{
    char header[300];
    size_t bytes = n * sizeof(float);
    int size =
        snprintf(header, sizeof header,
                 "{\"input\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},"
                 "\"target\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}}",
                 n, bytes, n, bytes, 2 * bytes);
    uint64_t length = (uint64_t)size;
    struct load load = {.what = what,
                        .target = target,
                        .type = "application/x-safetensors",
                        .size = 8 + (size_t)size + 2 * bytes};
    load.body = malloc(load.size);
    memcpy(load.body, &length, 8);
    memcpy(load.body + 8, header, (size_t)size);
    put_tensors(load.body + 8 + size, n);
    return load;
}

static struct load make_inference(const char *what, size_t n)
{
    char header[400];
    int size = snprintf(header, sizeof header,
                        "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[%zu]},"
                        "{\"name\":\"target\",\"datatype\":\"FP32\",\"shape\":[%zu]}],"
                        "\"parameters\":{\"reduction\":\"sum\"}}",
                        n, n);
    struct load load = {.what = what,
                        .target = "/v2/models/kl_div/infer",
                        .type = "application/octet-stream",
                        .json_size = (size_t)size,
                        .size = (size_t)size + 2 * n * sizeof(float)};
    load.body = malloc(load.size);
    memcpy(load.body, header, (size_t)size);
    put_tensors(load.body + size, n);
    return load;
}

/* Makes JSON of n numbers for each tensor with `digits` digits after the point. */
static struct load make_json(const char *what, const char *target, size_t n, int digits)
{
    struct load load = {.what = what,
                        .target = target,
                        .type = "application/json",
                        .body = malloc(n * 60 + 100),
                        .numbers = 2 * n};
    char *p = load.body;
    for (int tensor = 0; tensor < 2; tensor++) {
        p += sprintf(p, tensor ? ",\"target\":[" : "{\"input\":[");
        for (size_t i = 0; i < n; i++)
            p += sprintf(p, "%s%.*f", i ? "," : "", digits, tensor ? drand48() : -drand48());
        p += sprintf(p, "]");
    }
    p += sprintf(p, "}");
    load.size = (size_t)(p - load.body);
    return load;
}

int main(int argc, char **argv)
{
    enum { MILLION = 1000000 };
    if (argc != 4)
        return 1;
    int ours = open_connection(argv[1]), bare = open_connection(argv[2]);
    const struct load loads[] = {
        make_safetensors("safetensors, 64 MiB, sum", "/kl_div?reduction=sum",
                         (32 << 20) / sizeof(float)),
        make_safetensors("safetensors, 1 MiB, sum", "/kl_div?reduction=sum",
                         (512 << 10) / sizeof(float)),
        make_inference("inference, 64 MiB, sum", (32 << 20) / sizeof(float)),
        make_json("JSON, 2 million numbers of 9 digits, sum", "/kl_div?reduction=sum", MILLION, 9),
        make_json("JSON, 2 million numbers of 17 digits, sum", "/kl_div?reduction=sum", MILLION,
                  17),
        make_json("the same, none: a million numbers come back", "/kl_div?reduction=none", MILLION,
                  17),
        make_json("the same as float32", "/kl_div?reduction=none&dtype=float32", MILLION, 9),
    };
    printf("\nLarge bodies over loopback, milliseconds, medians of %d in turn; memory of the whole "
           "process, code and all\n\n",
           RUNS);
    printf("| | kldivd | bare libmicrohttpd, body dropped | ratio | peak memory / body | ns a "
           "number |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        print_row(&loads[i], ours, bare, argv[3]);
        free(loads[i].body);
    }
    close(ours);
    close(bare);
    return 0;
}
