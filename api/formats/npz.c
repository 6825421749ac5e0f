#include "api/formats/npz.h"

#include "api/formats/npy.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zip.h>

/* Limits of an archive's directory, in entries and bytes. libzip allocates about 250 bytes for
 * each listed entry, and an entry takes 46 bytes of the body. */
enum { MAX_ENTRIES = 16, MAX_DIRECTORY = 64 << 10 };

/* MAX_INFLATION: the most bytes that deflate makes of one. */
enum { MAX_INFLATION = 1032 };

static bool malformed(struct api_problem *problem, const char *what)
{
    return api_fail(problem, "npz_malformed", "the body is not a valid .npz file: %s", what);
}

static uint64_t little_endian(const char *bytes, size_t size)
{
    uint64_t value = 0;
    while (size-- > 0)
        value = value << 8 | (unsigned char)bytes[size];
    return value;
}

static bool small_directory(uint64_t entries, uint64_t size)
{
    return entries <= MAX_ENTRIES && size <= MAX_DIRECTORY;
}

/* Checks the end record at `at` against the limits. The ZIP64 record, which its locator
 * precedes, replaces numbers that do not fit (APPNOTE.TXT 4.3.14 to 4.3.16). */
static bool directory_fits_at(const char *body, size_t at)
{
    enum { LOCATOR = 20, LONG_RECORD = 56 };
    uint64_t entries = little_endian(body + at + 10, 2), size = little_endian(body + at + 12, 4);
    if (at >= LOCATOR && memcmp(body + at - LOCATOR, "PK\6\7", 4) == 0) {
        uint64_t record = little_endian(body + at - LOCATOR + 8, 8);
        if (record > at || at - record < LONG_RECORD)
            return false;
        if (!small_directory(little_endian(body + record + 32, 8),
                             little_endian(body + record + 40, 8)))
            return false;
        return (entries <= MAX_ENTRIES || entries == 0xffff) &&
               (size <= MAX_DIRECTORY || size == 0xffffffff);
    }
    return small_directory(entries, size);
}

/* Checks every position that libzip may accept as the end of the archive. */
static bool directory_fits(const char *body, size_t size)
{
    enum { END_RECORD = 22, MAX_COMMENT = 65535 };
    size_t first = size > END_RECORD + MAX_COMMENT ? size - END_RECORD - MAX_COMMENT : 0;
    for (size_t at = first; at + END_RECORD <= size; at++)
        if (memcmp(body + at, "PK\5\6", 4) == 0 && !directory_fits_at(body, at))
            return false;
    return true;
}

/* True if libzip failed for want of memory, which it may report as another error: malloc leaves it in
 * errno. */
static bool lacks_memory(zip_error_t *error)
{
    return errno == ENOMEM || zip_error_code_zip(error) == ZIP_ER_MEMORY;
}

/* Extracts "input" from "input.npy". */
static bool tensor_name(const char *entry, char *to, size_t size)
{
    static const char suffix[] = ".npy";
    size_t length = strlen(entry), stem = length - (sizeof suffix - 1);
    if (length < sizeof suffix - 1 || strcmp(entry + stem, suffix) != 0 || stem >= size)
        return false;
    memcpy(to, entry, stem);
    to[stem] = '\0';
    return true;
}

/* Accepts entries that are stored or deflated, and not encrypted. */
static bool check_method(const zip_stat_t *stat, struct api_problem *problem)
{
    if (stat->encryption_method != ZIP_EM_NONE)
        return api_fail(problem, "npz_malformed", "entry %.100s is encrypted", stat->name);
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE)
        return api_fail(problem, "npz_malformed",
                        "entry %.100s is compressed by method %d, and stored and deflated entries "
                        "are read",
                        stat->name, stat->comp_method);
    if (stat->size > stat->comp_size * MAX_INFLATION + MAX_INFLATION)
        return api_fail(problem, "npz_malformed",
                        "entry %.100s has a larger size than deflate can make of it", stat->name);
    return true;
}

static bool inflate_entry(zip_t *archive, const zip_stat_t *stat, struct api_buffer *to,
                          struct api_problem *problem)
{
    char more;
    if (!api_buffer_reserve(to, stat->size + 1))
        return api_fail_for_memory(problem);
    zip_file_t *file = zip_fopen_index(archive, stat->index, 0);
    bool good = file && zip_fread(file, to->data, stat->size) == (zip_int64_t)stat->size &&
                zip_fread(file, &more, 1) == 0; /* verifies the checksum */
    zip_error_t *error = file ? zip_file_get_error(file) : zip_get_error(archive);
    if (!good && lacks_memory(error))
        api_fail_for_memory(problem);
    else if (!good)
        api_fail(problem, "npz_malformed", "entry %.100s cannot be read: %s", stat->name,
                 zip_error_code_zip(error) == ZIP_ER_OK
                     ? "its size differs from the archive's directory"
                     : zip_error_strerror(error));
    if (file)
        zip_fclose(file);
    to->size = stat->size;
    return good;
}

/* Reads an entry; `room` is the number of bytes that the remaining arrays may use. */
static bool read_entry(struct api_call *call, zip_t *archive, zip_uint64_t index, size_t *room,
                       struct api_problem *problem)
{
    char name[256];
    zip_stat_t stat;
    if (zip_stat_index(archive, index, 0, &stat) != 0)
        return malformed(problem, zip_strerror(archive));
    if (!tensor_name(stat.name, name, sizeof name))
        return api_fail(problem, "tensor_unknown", "entry '%.100s' is not the .npy of a tensor",
                        stat.name);
    struct api_tensor *tensor = api_call_tensor(call, name, NULL, problem);
    if (!tensor)
        return false;
    if (stat.size > *room)
        return api_fail(problem, "body_too_large",
                        "entry %.100s makes the arrays larger than this server takes", stat.name);
    if (!check_method(&stat, problem))
        return false;
    *room -= stat.size;
    return inflate_entry(archive, &stat, &tensor->data, problem) &&
           api_npy_read(call, tensor, tensor->data.data, tensor->data.size, problem);
}

static void fail_to_open(zip_error_t *error, struct api_problem *problem)
{
    if (lacks_memory(error)) {
        api_fail_for_memory(problem);
        return;
    }
    switch (zip_error_code_zip(error)) {
    case ZIP_ER_EXISTS:
        api_fail(problem, "tensor_repeated", "two entries have the same name");
        break;
    case ZIP_ER_NOENT:
        malformed(problem, "an entry has impossible sizes");
        break;
    default:
        malformed(problem, zip_error_strerror(error));
    }
}

static zip_t *open_archive(const struct api_request *request, struct api_problem *problem)
{
    zip_error_t error;
    zip_error_init(&error);
    zip_t *archive = NULL;
    zip_source_t *source = zip_source_buffer_create(request->body, request->body_size, 0, &error);
    if (source)
        archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (!archive) {
        fail_to_open(&error, problem);
        zip_source_free(source);
    }
    zip_error_fini(&error);
    return archive;
}

bool api_npz_decode(struct api_call *call, const struct api_request *request,
                    struct api_problem *problem)
{
    size_t room = call->service->max_body;
    errno = 0;
    if (request->body_size == 0) /* libzip would create an archive */
        return malformed(problem, "it is empty");
    if (!directory_fits(request->body, request->body_size))
        return malformed(problem, "its directory is too large or broken");
    zip_t *archive = open_archive(request, problem);
    bool good = archive != NULL;
    zip_int64_t n = good ? zip_get_num_entries(archive, 0) : 0;
    for (zip_int64_t i = 0; i < n && good; i++)
        good = read_entry(call, archive, (zip_uint64_t)i, &room, problem);
    if (archive)
        zip_discard(archive);
    return good;
}

/* ---- Writing */

/* Adds an output as a stored entry: the .npy header, then the elements without a copy. */
static bool add_output(zip_t *archive, const char *name, const struct api_buffer *header,
                       const struct api_buffer *numbers)
{
    char entry[64];
    zip_buffer_fragment_t pieces[] = {{(zip_uint8_t *)header->data, header->size},
                                      {(zip_uint8_t *)numbers->data, numbers->size}};
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source =
        zip_source_buffer_fragment_create(pieces, numbers->size ? 2 : 1, 0, &error);
    zip_error_fini(&error);
    snprintf(entry, sizeof entry, "%s.npy", name);
    zip_int64_t index = source ? zip_file_add(archive, entry, source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    return zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_dostime(archive, (zip_uint64_t)index, 0, 0x21, 0) == 0; /* 1980-01-01 */
}

static bool add_outputs(zip_t *archive, struct api_call *call, struct api_buffer *headers)
{
    struct kl_tensor view;
    for (size_t i = 0; i < API_OUTPUTS; i++) {
        const struct api_buffer *numbers = api_npy_output(call, i, &view);
        if (!numbers)
            continue;
        api_npy_header(&headers[i], &view);
        if (numbers->failed || headers[i].failed ||
            !add_output(archive, api_output_names[i], &headers[i], numbers))
            return false;
    }
    return true;
}

/* Copies the archive that libzip wrote into the reply. */
static bool copy_archive(zip_source_t *written, struct api_buffer *to)
{
    zip_stat_t stat;
    if (zip_source_stat(written, &stat) != 0 || !api_buffer_room(to, stat.size) ||
        zip_source_open(written) != 0)
        return false;
    bool good = zip_source_read(written, to->data + to->size, stat.size) == (zip_int64_t)stat.size;
    to->size += good ? stat.size : 0;
    zip_source_close(written);
    return good;
}

static bool write_archive(zip_source_t *written, struct api_call *call, struct api_buffer *headers)
{
    zip_error_t error;
    zip_error_init(&error);
    zip_t *archive = zip_open_from_source(written, ZIP_TRUNCATE, &error);
    zip_error_fini(&error);
    if (!archive)
        return false;
    zip_source_keep(written); /* closing the archive frees one reference */
    if (add_outputs(archive, call, headers) && zip_close(archive) == 0)
        return true;
    zip_discard(archive);
    return false;
}

void api_npz_encode(struct api_call *call, struct api_reply *reply)
{
    struct api_buffer headers[API_OUTPUTS] = {{0}};
    struct api_budget *budget = call->service->budget;
    size_t copied = call->loss.size;
    zip_error_t error;
    for (size_t i = 0; i < KL_OPERANDS; i++)
        copied += call->gradients[i].size;
    if (!api_budget_reserve(budget, copied)) { /* libzip keeps a copy until it is read */
        reply->body.failed = true;
        return;
    }
    zip_error_init(&error);
    zip_source_t *written = zip_source_buffer_create(NULL, 0, 0, &error);
    zip_error_fini(&error);
    if (!written || !write_archive(written, call, headers) || !copy_archive(written, &reply->body))
        reply->body.failed = true;
    zip_source_free(written);
    api_budget_release(budget, copied);
    for (size_t i = 0; i < API_OUTPUTS; i++)
        api_buffer_free(&headers[i]);
    api_npy_warnings(call, reply);
}
