#include "api/request/tokens.h"

#include "api/memory/buffer.h"
#include "api/text/percent.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* TOKEN_ROOM: bytes of a token, padded with NUL. STRONG_TOKEN: characters; 16 of base64 are 96 bits. */
enum { TOKEN_ROOM = 256, STRONG_TOKEN = 16 };

struct entry {
    struct api_token public;
    char text[TOKEN_ROOM];
};

struct api_tokens {
    pthread_rwlock_t lock;
    struct entry *entries;
    size_t n;
};

/* ---- Comparison */

/* True if two padded texts are equal. Reads all bytes of both, whatever they are; the empty
 * statement hides the sum from the compiler, which could otherwise leave the loop early. */
static bool same_text(const char *a, const char *b)
{
    unsigned difference = 0;
    for (size_t i = 0; i < TOKEN_ROOM; i++)
        difference |= (unsigned char)a[i] ^ (unsigned char)b[i];
    __asm__("" : "+r"(difference));
    return difference == 0;
}

/* The credentials of the scheme Bearer, whose name may come in any case; NULL for others. */
static const char *credentials_in(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return NULL;
    const char *given = authorization + sizeof scheme - 1;
    given += strspn(given, " ");
    return *given ? given : NULL;
}

enum api_bearer api_tokens_check(struct api_tokens *tokens, const char *authorization,
                                 struct api_token *found)
{
    const char *given = credentials_in(authorization);
    char padded[TOKEN_ROOM] = "";
    size_t size = given ? strcspn(given, " \t") : 0;
    bool known = false;
    if (!given)
        return API_BEARER_ABSENT;
    memcpy(padded, given, size < sizeof padded ? size : sizeof padded);
    pthread_rwlock_rdlock(&tokens->lock);
    for (size_t i = 0; i < tokens->n; i++)
        if (same_text(padded, tokens->entries[i].text)) {
            *found = tokens->entries[i].public;
            known = true;
        }
    pthread_rwlock_unlock(&tokens->lock);
    explicit_bzero(padded, sizeof padded);
    bool is_one_word = given[size + strspn(given + size, " \t")] == '\0';
    return known && is_one_word && size < sizeof padded ? API_BEARER_KNOWN : API_BEARER_WRONG;
}

/* ---- Lines of the file */

enum { MAX_FIELDS = 4 };

struct fields {
    const char *at[MAX_FIELDS];
    size_t size[MAX_FIELDS];
    size_t n;
};

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Splits a line at blanks and colons. False if there are too many fields, or none beside a colon. */
static bool split(const char *p, const char *end, struct fields *fields)
{
    const char *comment = memchr(p, '#', (size_t)(end - p));
    bool wanted = false;
    end = comment ? comment : end;
    fields->n = 0;
    for (p = skip_blanks(p, end); p < end; p = skip_blanks(p, end)) {
        const char *start = p;
        while (p < end && !memchr(" \t\r:", *p, 4))
            p++;
        if (p == start || fields->n == MAX_FIELDS)
            return false;
        fields->at[fields->n] = start;
        fields->size[fields->n++] = (size_t)(p - start);
        p = skip_blanks(p, end);
        wanted = p < end && *p == ':';
        p += wanted;
    }
    return !wanted;
}

static bool is_in(const char *text, size_t size, const char *allowed)
{
    for (size_t i = 0; i < size; i++)
        if (!text[i] || !strchr(allowed, text[i]))
            return false;
    return true;
}

#define ALPHANUMERIC "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static bool is_token(const char *text, size_t size)
{
    if (size < 1 || size >= TOKEN_ROOM)
        return false;
    while (size > 1 && text[size - 1] == '=')
        size--;
    return is_in(text, size, ALPHANUMERIC "-._~+/");
}

static const struct {
    const char *word;
    size_t size;
    unsigned scope;
} scope_words[] = {
    {"read", 4, API_SCOPE_READ}, {"write", 5, API_SCOPE_WRITE}, {"observe", 7, API_SCOPE_OBSERVE}};

/* Reads words with commas between, each of them once. */
static bool read_scopes(const char *text, size_t size, unsigned *scopes)
{
    for (*scopes = 0;; text++, size--) {
        const char *comma = memchr(text, ',', size);
        size_t word = comma ? (size_t)(comma - text) : size, i = 0;
        while (i < 3 &&
               (scope_words[i].size != word || memcmp(scope_words[i].word, text, word) != 0))
            i++;
        if (i == 3 || *scopes & scope_words[i].scope)
            return false;
        *scopes |= scope_words[i].scope;
        text += word;
        size -= word;
        if (!comma)
            return true;
    }
}

/* True if a text in the place of a name or a token looks like scopes. `observe` alone was a name before it was a
 * scope. */
static bool is_like_scopes(const char *text, size_t size)
{
    unsigned scopes;
    return read_scopes(text, size, &scopes) && scopes != API_SCOPE_OBSERVE;
}

/* Appends a pattern of `size` characters. */
static bool read_pattern(const char *text, size_t size, struct api_token *token, size_t *used)
{
    bool is_prefix = size > 0 && text[size - 1] == '*';
    size_t i = token->n_patterns, start = *used;
    if (i == API_TOKEN_PATTERNS || size == 0)
        return false;
    for (const char *p = text, *end = text + size - is_prefix; p < end; p++) {
        int c = (unsigned char)*p;
        if (c == '%' && (end - p < 3 || (c = api_percent_decode(p)) <= 0))
            return false;
        if (*used + 2 > API_TOKEN_GROUPS || *p == '*')
            return false;
        p += *p == '%' ? 2 : 0;
        token->groups[(*used)++] = (char)c;
    }
    token->patterns[i].at = (unsigned char)start;
    token->patterns[i].is_prefix = is_prefix;
    token->n_patterns++;
    token->groups[(*used)++] = '\0';
    return *used < API_TOKEN_GROUPS && api_is_utf8(token->groups + start);
}

static bool read_groups(const char *text, size_t size, struct api_token *token)
{
    size_t used = 0;
    for (;; text++, size--) {
        const char *comma = memchr(text, ',', size);
        size_t pattern = comma ? (size_t)(comma - text) : size;
        if (!read_pattern(text, pattern, token, &used))
            return false;
        text += pattern;
        size -= pattern;
        if (!comma)
            return true;
    }
}

/* Takes groups=PATTERNS, if they stand there, out of the fields. */
static bool take_groups(struct fields *fields, struct api_token *token)
{
    static const char word[] = "groups=";
    enum { SIZE = sizeof word - 1 };
    size_t i = fields->n - 2;
    if (fields->n < 3 || fields->size[i] < SIZE || memcmp(fields->at[i], word, SIZE) != 0)
        return true;
    if (!read_groups(fields->at[i] + SIZE, fields->size[i] - SIZE, token))
        return false;
    fields->at[i] = fields->at[i + 1];
    fields->size[i] = fields->size[i + 1];
    fields->n--;
    return true;
}

bool api_token_has_group(const struct api_token *token, const char *group)
{
    for (size_t i = 0; i < token->n_patterns; i++) {
        const char *text = token->groups + token->patterns[i].at;
        if (token->patterns[i].is_prefix ? strncmp(text, group, strlen(text)) == 0
                                         : strcmp(text, group) == 0)
            return true;
    }
    return token->n_patterns == 0;
}

static const char not_a_line[] = "the line is not TOKEN, NAME TOKEN or NAME SCOPES TOKEN, perhaps "
                                 "with groups=PATTERNS before TOKEN";

/* Reads the fields of one line as the entry of number `n`. Returns the error, or NULL. */
static const char *read_entry(struct fields *fields, size_t n, struct entry *entry)
{
    *entry = (struct entry){.public.scopes = API_SCOPE_READ | API_SCOPE_WRITE};
    if (!take_groups(fields, &entry->public))
        return "the groups are not 1 to 8 names, each of which may end with *, with commas between";
    if (fields->n == MAX_FIELDS)
        return not_a_line;
    const char *name = fields->at[0], *token = fields->at[fields->n - 1];
    size_t name_size = fields->size[0], token_size = fields->size[fields->n - 1];
    if (fields->n == 1)
        snprintf(entry->public.name, sizeof entry->public.name, "token%zu", n);
    else if (name_size >= API_TOKEN_NAME || !is_in(name, name_size, ALPHANUMERIC "._-"))
        return "the name is not 1 to 32 characters of A-Z a-z 0-9 . _ -";
    else if (is_like_scopes(name, name_size))
        return "a name must stand before the scopes";
    else
        memcpy(entry->public.name, name, name_size);
    if (fields->n == 3 && !read_scopes(fields->at[1], fields->size[1], &entry->public.scopes))
        return "the scopes are not read, observe or write, or several of them with commas between";
    if (!is_token(token, token_size) || is_like_scopes(token, token_size))
        return "the token is not 1 to 255 characters of A-Z a-z 0-9 - . _ ~ + / with = at its end";
    memcpy(entry->text, token, token_size);
    return NULL;
}

static const char *find_repeated(const struct entry *entries, size_t n, const struct entry *entry)
{
    for (size_t i = 0; i < n; i++) {
        if (same_text(entries[i].text, entry->text))
            return "the token is given twice";
        if (strcmp(entries[i].public.name, entry->public.name) == 0)
            return "the name is given twice";
    }
    return NULL;
}

/* Reads the line into entries[*n], unless it is blank. Returns the error, or NULL. */
static const char *read_line(const char *line, const char *end, struct entry *entries, size_t *n)
{
    struct fields fields;
    if (!split(line, end, &fields))
        return not_a_line;
    if (fields.n == 0)
        return NULL;
    const char *what = read_entry(&fields, *n + 1, &entries[*n]);
    if (!what)
        what = find_repeated(entries, *n, &entries[*n]);
    *n += !what;
    return what;
}

/* ---- The set */

static void free_entries(struct entry *entries, size_t n)
{
    if (entries)
        explicit_bzero(entries, n * sizeof *entries);
    free(entries);
}

/* Reads all lines; the array has room for each of them. */
static bool read_lines(const char *text, const char *end, struct entry *entries, size_t *n,
                       struct api_parse_error *error)
{
    for (error->line = 1; text < end; error->line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        error->what = read_line(text, newline ? newline : end, entries, n);
        if (error->what)
            return false;
        text = newline ? newline + 1 : end;
    }
    error->line = 0;
    error->what = "there is no token in it";
    return *n > 0;
}

bool api_tokens_read(struct api_tokens *tokens, const char *text, size_t size,
                     struct api_parse_error *error)
{
    size_t n = 0, lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    struct entry *entries = calloc(lines, sizeof *entries);
    *error = (struct api_parse_error){.what = "there is no memory for it"};
    if (!entries)
        return false;
    if (!read_lines(text, text + size, entries, &n, error)) {
        free_entries(entries, lines);
        return false;
    }
    pthread_rwlock_wrlock(&tokens->lock);
    struct entry *old = tokens->entries;
    size_t n_old = tokens->n;
    tokens->entries = entries;
    tokens->n = n;
    pthread_rwlock_unlock(&tokens->lock);
    free_entries(old, n_old);
    return true;
}

struct api_tokens *api_tokens_new(void)
{
    struct api_tokens *tokens = calloc(1, sizeof *tokens);
    if (tokens)
        pthread_rwlock_init(&tokens->lock, NULL);
    return tokens;
}

void api_tokens_free(struct api_tokens *tokens)
{
    if (!tokens)
        return;
    free_entries(tokens->entries, tokens->n);
    pthread_rwlock_destroy(&tokens->lock);
    free(tokens);
}

size_t api_tokens_count(struct api_tokens *tokens)
{
    pthread_rwlock_rdlock(&tokens->lock);
    size_t n = tokens->n;
    pthread_rwlock_unlock(&tokens->lock);
    return n;
}

size_t api_tokens_weak(struct api_tokens *tokens)
{
    size_t weak = 0;
    pthread_rwlock_rdlock(&tokens->lock);
    for (size_t i = 0; i < tokens->n; i++)
        weak += strlen(tokens->entries[i].text) < STRONG_TOKEN;
    pthread_rwlock_unlock(&tokens->lock);
    return weak;
}
