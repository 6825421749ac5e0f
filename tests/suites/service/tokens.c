/* Token files, and the comparison of what a client shows with them. */
#include "api/request/tokens.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"

static struct api_tokens *tokens_of(const char *text)
{
    struct api_tokens *tokens = api_tokens_new();
    struct api_parse_error mistake;
    cr_assert(tokens && api_tokens_read(tokens, text, strlen(text), &mistake), "%s", text);
    return tokens;
}

Test(tokens, lines_have_a_name_and_scopes_or_not)
{
    static const struct {
        const char *text, *shown, *name;
        unsigned scopes;
    } cases[] = {
        {A, A, "token1", 3},
        {A "\n" B "\n", B, "token2", 3},
        {"\n# a comment\n  \n" A " # another\r\n", A, "token1", 3},
        {"ci " A, A, "ci", 3},
        {"ci:" A "\n", A, "ci", 3},
        {"\tci \t " A, A, "ci", 3},
        {"ci : read : " A, A, "ci", 1},
        {"ci read " A, A, "ci", 1},
        {"ci:write:" A, A, "ci", 2},
        {"ci read,write " A, A, "ci", 3},
        {"ci write,read " A "\nother " B, A, "ci", 3},
        {"a.b_c-D9 " A, A, "a.b_c-D9", 3},
        {"ci observe " A, A, "ci", 4},
        {"ci write,observe,read " A, A, "ci", 7},
        {"observe " A, A, "observe", 3},
        {"groups=", "groups=", "token1", 3},
        {"ci groups==", "groups==", "ci", 3},
        {"aZ09-._~+/aaaaaaaaaa==", "aZ09-._~+/aaaaaaaaaa==", "token1", 3},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_tokens *tokens = tokens_of(cases[i].text);
        struct api_token found;
        char header[100];
        snprintf(header, sizeof header, "Bearer %s", cases[i].shown);
        cr_expect_eq(api_tokens_check(tokens, header, &found), API_BEARER_KNOWN, "case %zu", i);
        cr_expect_str_eq(found.name, cases[i].name);
        cr_expect_eq(found.scopes, cases[i].scopes, "case %zu", i);
        api_tokens_free(tokens);
    }
}

Test(tokens, mistakes_name_their_line_and_leave_the_set_as_it_was)
{
    static const struct {
        const char *text;
        size_t line;
        const char *says;
    } cases[] = {
        {"", 0, "no token"},
        {"\n# nothing\n", 0, "no token"},
        {A "\nb\xc3\xa9" B, 2, "1 to 255"},
        {"a=aaaaaaaaaaaaaaa", 1, "1 to 255"},
        {"\"" A "\"", 1, "1 to 255"},
        {A "\n\nci read", 3, "1 to 255"},
        {"ci admin " A, 1, "scopes"},
        {"ci read,read " A, 1, "scopes"},
        {"ci read write " A, 1, "is not TOKEN"},
        {"ci read,observe,read " A, 1, "scopes"},
        {"ci read, " A, 1, "scopes"},
        {"observe,read " A, 1, "name"},
        {"ci read write observe " A, 1, "is not TOKEN"},
        {"groups=a " A, 1, "name"},
        {"ci groups= " A, 1, "groups"},
        {"ci groups=a,,b " A, 1, "groups"},
        {"ci groups=a, " A, 1, "groups"},
        {"ci groups=*a " A, 1, "groups"},
        {"ci groups=a** " A, 1, "groups"},
        {"ci groups=%4 " A, 1, "groups"},
        {"ci groups=%zz " A, 1, "groups"},
        {"ci groups=%00 " A, 1, "groups"},
        {"ci groups=%ff " A, 1, "groups"},
        {"ci groups=gr%C3* " A, 1, "groups"},
        {"ci groups=1,2,3,4,5,6,7,8,9 " A, 1, "groups"},
        {"ci groups=a read " A, 1, "is not TOKEN"},
        {"ci:" A ":", 1, "is not TOKEN"},
        {":" A, 1, "is not TOKEN"},
        {"ci::" A, 1, "is not TOKEN"},
        {"c/i " A, 1, "name"},
        {"aaaaaaaaaabbbbbbbbbbccccccccccddd " A, 1, "name"},
        {"read " A, 1, "name"},
        {"read,write " A, 1, "name"},
        {A "\n" A, 2, "token is given twice"},
        {"a " A "\nb " A, 2, "token is given twice"},
        {"a " A "\na " B, 2, "name is given twice"},
        {"token2 " A "\n" B, 2, "name is given twice"},
    };
    struct api_tokens *tokens = tokens_of("old " A);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_parse_error mistake;
        struct api_token found;
        const char *text = cases[i].text;
        cr_expect(!api_tokens_read(tokens, text, strlen(text), &mistake), "case %zu", i);
        cr_expect_eq(mistake.line, cases[i].line, "case %zu: %zu", i, mistake.line);
        cr_expect(strstr(mistake.what, cases[i].says), "case %zu: %s", i, mistake.what);
        cr_expect_eq(api_tokens_check(tokens, "Bearer " A, &found), API_BEARER_KNOWN);
        cr_expect_str_eq(found.name, "old");
    }
    struct api_parse_error mistake;
    cr_expect(!api_tokens_read(tokens, A "\0b", sizeof A + 1, &mistake), "NUL is no character");
    api_tokens_free(tokens);
}

Test(tokens, patterns_are_names_and_begins_of_names)
{
    static const struct {
        const char *line, *group;
        bool has;
    } cases[] = {
        {"ci " A, "anything", true},
        {"ci groups=fraud-* " A, "fraud-", true},
        {"ci groups=fraud-* " A, "fraud-cards", true},
        {"ci groups=fraud-* " A, "fraud", false},
        {"ci groups=fraud-* " A, "Fraud-cards", false},
        {"ci:read:groups=fraud:" A, "fraud", true},
        {"ci read groups=fraud " A, "fraud-cards", false},
        {"ci read groups=a,b,c* " A, "b", true},
        {"ci read groups=a,b,c* " A, "cd", true},
        {"ci read groups=a,b,c* " A, "ab", false},
        {"ci groups=* " A, "anything", true},
        {"ci groups=a%2a " A, "a*", true},
        {"ci groups=a%2a " A, "ab", false},
        {"ci groups=%2C%20%23%3a%25 " A, ", #:%", true},
        {"ci groups=gr%C3%B6%C3%9Fe* " A, "größer", true},
        {"ci groups=größe " A, "größe", true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_tokens *tokens = tokens_of(cases[i].line);
        struct api_token found;
        cr_assert_eq(api_tokens_check(tokens, "Bearer " A, &found), API_BEARER_KNOWN);
        cr_expect_eq(api_token_has_group(&found, cases[i].group), cases[i].has, "case %zu", i);
        api_tokens_free(tokens);
    }
}

/* All patterns together, each with a NUL, have 256 bytes at most, of which the last ends the list. */
Test(tokens, patterns_have_a_bound)
{
    struct api_tokens *tokens = api_tokens_new();
    struct api_parse_error mistake;
    for (int size = 200; size < 400; size++) {
        char text[500];
        int n = snprintf(text, sizeof text, "ci groups=%0*d " A, size, 0);
        cr_expect_eq(api_tokens_read(tokens, text, (size_t)n, &mistake), size <= 254, "%d", size);
    }
    api_tokens_free(tokens);
}

/* The longest token, and one that is longer by a character. */
Test(tokens, have_255_characters_at_most)
{
    char text[257];
    struct api_tokens *tokens = api_tokens_new();
    struct api_parse_error mistake;
    memset(text, 'x', sizeof text);
    cr_expect(!api_tokens_read(tokens, text, 256, &mistake));
    cr_expect(api_tokens_read(tokens, text, 255, &mistake));
    for (size_t size = 254; size <= 257; size++) {
        char header[300];
        struct api_token found;
        snprintf(header, sizeof header, "Bearer %.*s", (int)size, text);
        cr_expect_eq(api_tokens_check(tokens, header, &found),
                     size == 255 ? API_BEARER_KNOWN : API_BEARER_WRONG);
    }
    api_tokens_free(tokens);
}

Test(tokens, only_a_whole_token_of_the_scheme_is_taken)
{
    static const struct {
        const char *header;
        enum api_bearer bearer;
    } cases[] = {
        {NULL, API_BEARER_ABSENT},
        {"", API_BEARER_ABSENT},
        {"Bearer", API_BEARER_ABSENT},
        {"Bearer ", API_BEARER_ABSENT},
        {"Basic " A, API_BEARER_ABSENT},
        {"Bearer" A, API_BEARER_ABSENT},
        {A, API_BEARER_ABSENT},
        {"Bearer " A, API_BEARER_KNOWN},
        {"bearer " A, API_BEARER_KNOWN},
        {"BEARER   " A, API_BEARER_KNOWN},
        {"Bearer " B, API_BEARER_KNOWN},
        {"Bearer " A "a", API_BEARER_WRONG},
        {"Bearer " A " ", API_BEARER_KNOWN},
        {"Bearer " A " b", API_BEARER_WRONG},
        {"Bearer " A ", Bearer " B, API_BEARER_WRONG},
        {"Bearer aaaaaaaaaaaaaaa", API_BEARER_WRONG},
        {"Bearer aaaaaaaaaaaaaaab", API_BEARER_WRONG},
        {"Bearer AAAAAAAAAAAAAAAA", API_BEARER_WRONG},
    };
    struct api_tokens *tokens = tokens_of(A "\n" B), *none = api_tokens_new();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_token found;
        cr_expect_eq(api_tokens_check(tokens, cases[i].header, &found), cases[i].bearer, "case %zu",
                     i);
        cr_expect_neq(api_tokens_check(none, cases[i].header, &found), API_BEARER_KNOWN);
    }
    api_tokens_free(tokens);
    api_tokens_free(none);
    api_tokens_free(NULL);
}

struct checks {
    struct api_tokens *tokens;
    atomic_bool stop;
    atomic_ulong wrong;
};

static void *keep_checking(void *argument)
{
    struct checks *checks = argument;
    struct api_token found;
    while (!atomic_load(&checks->stop))
        atomic_fetch_add(&checks->wrong,
                         api_tokens_check(checks->tokens, "Bearer " A, &found) != API_BEARER_KNOWN);
    return NULL;
}

Test(tokens, may_be_read_again_while_they_are_checked)
{
    static const char *const texts[] = {A "\n" B, "a " A, "# x\nb read " A};
    struct checks checks = {.tokens = tokens_of(A)};
    pthread_t threads[3];
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], NULL, keep_checking, &checks);
    for (size_t i = 0; i < SOME_OF(2000); i++) {
        struct api_parse_error mistake;
        const char *text = texts[i % COUNT(texts)];
        cr_assert(api_tokens_read(checks.tokens, text, strlen(text), &mistake));
    }
    atomic_store(&checks.stop, true);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&checks.wrong), 0);
    api_tokens_free(checks.tokens);
}
