/* Parts of multipart/form-data (RFC 7578). */
#pragma once

#include "api/json/problem.h"

/* API_MAX_BOUNDARY: characters, by RFC 2046, 5.1.1. Names of parts have fewer than API_MAX_PART bytes. */
enum { API_MAX_BOUNDARY = 70, API_MAX_PART = 100 };

/* api_form: a reader of the parts of a body, which delimiters separate: "\r\n--" and the boundary. */
struct api_form {
    const char *body, *p, *end;
    char delimiter[4 + API_MAX_BOUNDARY + 1];
    size_t delimiter_size;
};

/* api_form_part: `content` lies in the body. */
struct api_form_part {
    char name[API_MAX_PART];
    char content_type[API_MAX_PART]; /* "" if there is none, or a longer one */
    const char *content;
    size_t size;
};

/* Finds the first part of a body by the boundary of its Content-Type, which may be NULL. Fails with
 * multipart_malformed. */
bool api_form_begin(struct api_form *form, const char *content_type, const char *body, size_t size,
                    struct api_problem *problem);

/* Reads the next part; false at the end, and with a problem. */
bool api_form_next(struct api_form *form, struct api_form_part *part, struct api_problem *problem);

/* Finds a parameter of a header's value, such as charset in `text/csv; charset="utf-8"`. False, with "" or not, if it is
 * absent, empty, unterminated or too long. */
bool api_form_parameter(const char *value, const char *name, char *to, size_t size);

/* Fails with multipart_malformed where the reader is. */
bool api_form_malformed(const struct api_form *form, const char *what, struct api_problem *problem);
