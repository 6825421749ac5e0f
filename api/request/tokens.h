/* api_tokens: the bearer tokens (RFC 6750) that the service takes, as a file lists them.
 *
 * A line of the file is TOKEN, NAME TOKEN, or NAME SCOPES TOKEN, with blanks or a colon between; before the TOKEN of one
 * with a name may stand groups=PATTERN,PATTERN.
 * NAME is 1 to 32 characters of A-Z a-z 0-9 . _ -, unique, and goes into the log; it is token1,
 * token2 and so on if absent. SCOPES are read, observe and write, with commas between, and read,write if absent. TOKEN is
 * 1 to 255 characters of b64token (A-Z a-z 0-9 - . _ ~ + / with = at its end). A PATTERN is the name of a group, or its
 * begin and *; characters that end a pattern or a line are written as %XX. A comment runs from # to the end of its
 * line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Scopes, as bits; observe is a part of write. */
enum { API_SCOPE_READ = 1, API_SCOPE_WRITE = 2, API_SCOPE_OBSERVE = 4 };

/* API_TOKEN_NAME: bytes of a name with its NUL. API_TOKEN_PATTERNS: of a token at most. API_TOKEN_GROUPS: bytes of all its
 * patterns, each with a NUL. */
enum { API_TOKEN_NAME = 33, API_TOKEN_PATTERNS = 8, API_TOKEN_GROUPS = 256 };

/* api_token: the public part of a token. */
struct api_token {
    char name[API_TOKEN_NAME];
    unsigned scopes;
    size_t n_patterns; /* 0: it is for all groups */
    struct {
        unsigned char at; /* in `groups` */
        bool is_prefix;
    } patterns[API_TOKEN_PATTERNS];
    char groups[API_TOKEN_GROUPS];
};

/* True if a token is for a group: it is for all, or a pattern of its own is for it. */
bool api_token_has_group(const struct api_token *token, const char *group);

static inline bool api_token_is_bound(const struct api_token *token)
{
    return token->n_patterns > 0;
}

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
