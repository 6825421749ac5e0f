/* A client of servers under which calls fail. */
#pragma once

#include "tests/suites/faults/script.h"
#include "tests/suites/support/process.h"
#include "tests/tools/preload/faults.h"

/* PATIENCE: seconds after which an answer is lost. */
enum { PATIENCE = 5 };

/* kind: calls that fail, and the reason that they give. */
struct kind {
    const char *name;
    enum fault fault;
    int reason;
};

/* The page of the servers that faults_preload lets start with the library. */
extern struct faults *faults;
void faults_preload(void);
void faults_unload(void);

/* Has call number `first` from now on fail, with `sticky` all later ones, too, until it is disarmed. */
void faults_arm(const struct kind *kind, long first, bool sticky);
void faults_disarm(void);

/* answered: `status` 0 if the connection was closed without a whole answer. */
struct answered {
    int status;
    bool hung;
    struct api_buffer bytes;
    const char *body; /* of the last answer in `bytes`: 100 Continue may be before it */
    size_t body_size;
};

/* Sends the request on a connection of its own. Calls fail no longer if the answer takes its time. */
struct answered converse(const struct server *server, const struct asked *asked);

bool has_text(const struct answered *answered, const char *text);

/* Writes the names of an answer's fields, in their order. */
void list_fields(const struct answered *answered, char *to, size_t size);

/* True if both answers have the same status, fields and body, as far as they do not vary. The body of a
 * problem may be missing. */
bool is_same(const struct asked *asked, const struct answered *a, const struct answered *b);
