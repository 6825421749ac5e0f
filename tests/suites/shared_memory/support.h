/* Shared by the tests of shared memory: an object, a service that lets it be registered, requests. */
#pragma once

#include "api/regions/regions.h"
#include "tests/suites/support/support.h"

/* OBJECT_SIZE: bytes of the object. */
enum { OBJECT_SIZE = 1 << 20 };

extern struct api_service service; /* of at most 4 regions */
extern char object[60];            /* name of the object, which begins with the prefix */
extern char *bytes;                /* the object, mapped */

/* Make the object and the service; remove them, and check that no memory is held. */
void shared_memory_begin(void);
void shared_memory_end(void);

/* Makes an object of `size` bytes, all of which have memory if `full`, and maps it. */
char *make_object(const char *name, size_t size, bool full);

/* Changes the size of the object. */
void resize_object(size_t size);

/* Asks the service. */
struct answer ask_path(const char *method, const char *path, const char *body);

/* Checks an answer and frees it: its status, the code of its problem, a part of its text. */
void expect(struct answer answer, int status, const char *code, const char *part);

#define REGION "/v2/systemsharedmemory/region/"
#define INFER "/v2/models/kl_div/infer"

struct answer register_region(const char *name, const char *key, size_t offset, size_t size);
void register_whole(void); /* the object, as "a" */
void unregister(const char *path);

/* location: where a tensor is. Its region is NULL for none. */
struct location {
    const char *region;
    size_t offset, size;
};

/* Writes a request for the losses of n float32 pairs, whose locations are those of input, target, loss. */
void write_request(char *to, size_t room, size_t n, const struct location locations[3],
                   const char *reduction);
struct answer infer(size_t n, const struct location locations[3], const char *reduction);

/* Fills the object with n log-probabilities from one offset, and n probabilities from another. */
void fill(size_t n, size_t x_at, size_t t_at);
