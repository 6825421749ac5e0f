/* C with libcurl: JSON, and safetensors. cc libcurl.c -lcurl */
#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sends a POST; writes the answer, JSON, to standard output, and a refusal to standard error. */
static int post(const char *url, const char *type, const void *body, size_t size)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, type);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    char *answer = NULL;
    size_t answer_size;
    FILE *stream = open_memstream(&answer, &answer_size);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, stream);
    CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    fclose(stream);
    const int failed = code != CURLE_OK || status != 200;
    if (failed)
        fprintf(stderr, "%s, status %ld: %s\n", curl_easy_strerror(code), status, answer);
    else
        puts(answer);
    free(answer);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return failed;
}

int main(int argc, char **argv)
{
    static const char json[] = "{\"input\": [[-1, -0.5], [-2, -0.25]],"
                               " \"target\": [[0.25, 0.75], [0.5, 0.5]]}";
    static const char header[] =
        "{\"input\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
        "\"target\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[16,32]}}";
    static const float data[] = {-1, -0.5f, -2, -0.25f, 0.25f, 0.75f, 0.5f, 0.5f};
    const uint64_t length = strlen(header);
    char file[8 + sizeof header + sizeof data], url[300];
    if (argc != 2)
        return 1;
    memcpy(file, &length, 8); /* little-endian, as on this machine */
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, data, sizeof data);

    snprintf(url, sizeof url, "%s?reduction=batchmean", argv[1]);
    return post(url, "Content-Type: application/json", json, strlen(json)) |
           post(url, "Content-Type: application/vnd.safetensors", file, 8 + length + sizeof data);
}
