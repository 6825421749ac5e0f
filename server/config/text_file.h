/* Small files of configuration, read whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* srv_file_error: the option whose file is at fault, and a sentence without a line's end. */
struct srv_file_error {
    const char *option;
    char text[400];
};

/* srv_text: the bytes of a file, which may be a secret. */
struct srv_text {
    char *data;
    size_t size;
};

/* Reads a file of at most 256 KiB. False, with the reason in *error, if it cannot be read. */
bool srv_text_read(struct srv_text *text, const char *option, const char *path,
                   struct srv_file_error *error);

/* Overwrites the bytes and frees them. */
void srv_text_free(struct srv_text *text);

/* Fills *error; always returns false. */
bool srv_file_fail(struct srv_file_error *error, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
