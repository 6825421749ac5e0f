/* api_tokens: the bearer tokens (RFC 6750) that the service takes, as a file lists them.
 *
 * A line of the file is TOKEN, NAME TOKEN, or NAME SCOPES TOKEN, with blanks or a colon between.
 * NAME is 1 to 32 characters of A-Z a-z 0-9 . _ -, unique, and goes into the log; it is token1,
 * token2 and so on if absent. SCOPES is read, write or read,write, and both if absent. TOKEN is 1
 * to 255 characters of b64token (A-Z a-z 0-9 - . _ ~ + / with = at its end). A comment runs from
 * # to the end of its line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Scopes, as bits. */
enum { API_SCOPE_READ = 1, API_SCOPE_WRITE = 2 };

/* API_TOKEN_NAME: bytes of a name with its NUL. */
enum { API_TOKEN_NAME = 33 };

/* api_token: the public part of a token. */
struct api_token {
    char name[API_TOKEN_NAME];
    unsigned scopes;
};

/* api_parse_error: the first line of a file that cannot be read, 0 for the file as a whole. `what` is
 * static and holds nothing of the file. */
struct api_parse_error {
    size_t line;
    const char *what;
};

struct api_tokens;

/* Makes an empty set, which takes no token. NULL if memory is exhausted. */
struct api_tokens *api_tokens_new(void);
void api_tokens_free(struct api_tokens *tokens);

/* Replaces the set by the tokens of a file of at least one. Any thread may call it while others
 * check. False, with the set unchanged, if there is an error. */
bool api_tokens_read(struct api_tokens *tokens, const char *text, size_t size,
                     struct api_parse_error *error);

size_t api_tokens_count(struct api_tokens *tokens);

/* Number of tokens of fewer than 16 characters, which can be guessed. */
size_t api_tokens_weak(struct api_tokens *tokens);

/* api_bearer: the outcome of a check. */
enum api_bearer {
    API_BEARER_ABSENT, /* there is no token of the scheme Bearer */
    API_BEARER_WRONG,
    API_BEARER_KNOWN,
};

/* Compares the value of an Authorization header, or NULL, with all tokens. The time depends on
 * their number, and on no character or length of theirs. Fills *found if the token is known. */
enum api_bearer api_tokens_check(struct api_tokens *tokens, const char *authorization,
                                 struct api_token *found);
