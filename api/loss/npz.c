/* Requests and responses of /kl_div as numpy's .npz, a zip archive of .npy files. */
#include "api/files/archive.h"
#include "api/loss/codecs.h"
#include "api/loss/npy.h"

#include <stdio.h>
#include <string.h>

/* MAX_ENTRIES: maximum of entries of an archive of tensors. TYPICAL_INFLATION: archives typically inflate to less
 * than so many times their size, stored ones not at all. */
enum { MAX_ENTRIES = 16, TYPICAL_INFLATION = 100 };

static bool read_entry(struct api_call *call, struct api_archive *archive,
                       struct api_problem *problem)
{
    struct api_tensor *tensor = api_tensor_find(call->tensors, archive->name, NULL, problem);
    return tensor && api_archive_inflate(archive, &tensor->data, problem) &&
           api_npy_read(tensor, tensor->data.data, tensor->data.size, problem);
}

/* Decodes the entries input.npy, target.npy and those of optional tensors, stored or deflated. */
static bool decode(struct api_call *call, const struct api_request *request,
                   struct api_problem *problem)
{
    struct api_archive archive = {.body = request->body,
                                  .size = request->body_size,
                                  .room = call->service->max_body,
                                  .repeated = "tensor_repeated",
                                  .stray = "tensor_unknown"};
    bool good = api_archive_open(&archive, MAX_ENTRIES, problem);
    while (good && api_archive_next(&archive, problem))
        good = read_entry(call, &archive, problem);
    api_archive_close(&archive);
    return good && !problem->code;
}

/* ---- Writing */

/* Adds an output as a stored entry: the .npy header, then the elements without a copy. */
static bool add_output(zip_t *archive, const char *name, const struct api_buffer *header,
                       const struct api_buffer *numbers)
{
    char entry[64];
    zip_buffer_fragment_t pieces[] = {{(zip_uint8_t *)header->data, header->size},
                                      {(zip_uint8_t *)numbers->data, numbers->size}};
    zip_source_t *source =
        zip_source_buffer_fragment_create(pieces, numbers->size ? 2 : 1, 0, NULL);
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

/* Copies the archive that libzip wrote into the response. */
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
    zip_t *archive = zip_open_from_source(written, ZIP_TRUNCATE, NULL);
    if (!archive)
        return false;
    zip_source_keep(written); /* closing the archive frees one reference */
    if (add_outputs(archive, call, headers) && zip_close(archive) == 0)
        return true;
    zip_discard(archive);
    return false;
}

/* Writes stored entries loss.npy and, if requested, gradient.input.npy and gradient.target.npy. */
static void encode(struct api_call *call, struct api_response *response)
{
    struct api_buffer headers[API_OUTPUTS] = {{0}};
    struct api_budget *budget = call->service->budget;
    size_t copied = call->loss.size;
    for (size_t i = 0; i < KL_OPERANDS; i++)
        copied += call->gradients[i].size;
    if (!api_budget_reserve(budget, copied)) { /* libzip keeps a copy until it is read */
        response->body.failed = true;
        return;
    }
    zip_source_t *written = zip_source_buffer_create(NULL, 0, 0, NULL);
    if (!written || !write_archive(written, call, headers) ||
        !copy_archive(written, &response->body))
        response->body.failed = true;
    zip_source_free(written);
    api_budget_release(budget, copied);
    for (size_t i = 0; i < API_OUTPUTS; i++)
        api_buffer_free(&headers[i]);
    api_npy_warnings(call, response);
}

static const char *const media_types[] = {"application/x-npz", NULL};
const struct api_codec api_codec_npz = {.media_types = media_types,
                                        .decode = decode,
                                        .encode = encode,
                                        .parsed = TYPICAL_INFLATION,
                                        .ns_per_element = API_COPY_NS};
